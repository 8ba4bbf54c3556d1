"""What a sampling writes: pictures, arrays, contact sheets, manifests, and what it remembers."""
