// Empty: cffi knows these types. bindings.py says why.
