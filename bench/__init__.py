"""What is measured, and against whom: each row runs its contenders interleaved in one run and tells ratios."""
