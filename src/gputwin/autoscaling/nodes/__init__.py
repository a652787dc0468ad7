"""Node pools in the simulator: rules of `pools/` start and stop nodes while a batch trace runs; what that costs."""
