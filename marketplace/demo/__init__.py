"""`python -m marketplace.demo`: the main job, shown from upload to earnings on this machine."""
