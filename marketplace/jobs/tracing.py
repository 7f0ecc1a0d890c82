"""One trace of a model at a time.

torch traces a model (to capture it, to export it) with state that belongs to the whole process. Two traces at once in
two threads, say a job that is posted while another's model is packed, fail in odd ways, and all later ones with them.
"""

from threading import Lock

one_trace_at_a_time = Lock()
