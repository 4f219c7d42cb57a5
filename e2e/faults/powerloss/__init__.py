"""A disk that loses on command what nobody synced, as a loss of power does, and the log kept on it.

`disk` is what such a disk holds, `answers` what it says to the kernel, `protocol` how the kernel asks, `serve` the
program that mounts it, `layer` what a test uses. Nothing here knows of the product.
"""
