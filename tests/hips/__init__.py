"""The tests of HIPS/autograd, run on ckad: what stands in for autograd, and what is expected."""
