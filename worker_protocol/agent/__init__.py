"""The device for laptops: `python -m worker_protocol.agent --server URL --pair CODE`.

It knows the wire and the kernels, and nothing of the site: no Django, no database. From the outside in:

- `__main__`     the command line, signals, exit codes
- `keys`         who this device is: its key and its pairing, in a folder of its own
- `pairing`      becoming a device of an owner's, once
- `device`       the socket: logs in, reconnects, carries messages
- `workbench`    the lease under way and the reports that wait for an answer
- `transport`    blobs over HTTP, through `cache`
- `trainer`      the training itself, in a thread
- `benchmark`    how fast this machine is
- `sensors`, `progress`, `backoff`, `errors`
"""
