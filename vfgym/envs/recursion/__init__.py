"""What `vfgym.RLMEnv` is made of: the session inside the sandbox, and on the host its REPL, sub-calls, root tools, prompt and metrics."""
