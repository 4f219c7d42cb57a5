"""A hub on a real Kubernetes cluster: installed, used, broken, upgraded, uninstalled."""
