"""The services of the sandbox, one module each: files they need, command lines, and when they are ready."""
