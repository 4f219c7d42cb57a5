"""What `mycelium doctor` looks at: this machine's settings and files, and the hub from outside."""
