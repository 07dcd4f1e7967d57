"""The services of the sandbox, one module each: files, commands, when they are ready."""
