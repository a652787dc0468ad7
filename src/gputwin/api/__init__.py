"""The public functions: each takes a path, a `Path`, a spec such as `synthetic:pai2020?jobs=1000`, or an opened object."""
