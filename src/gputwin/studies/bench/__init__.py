"""How fast the engine is: workloads, a plain-Python yardstick, and the suite that times both."""
