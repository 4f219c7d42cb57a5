"""Other products on the same jobs, side by side with Mycelium: `make bench-peers`.

They live in `.peers/`, which `install.sh` fills with the versions of `peers.txt`; nothing of them enters the product.
"""
