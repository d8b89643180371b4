"""A runtime that executes TFF computations in the Python process, clients on threads.

    from tff_het.simulation.in_process import in_process

    with in_process(clients_in_parallel=2):
        state = process.initialize()
        output = process.next(state, client_data)

It serves any computation of TFF whose blocks are TensorFlow: `tff.learning`'s algorithms as well
as this project's. There is no child process, nothing is serialised, and errors are TensorFlow's own.
Secure sums, JAX computations and whatever else it does not execute are refused by name.
"""

from tff_het.simulation.in_process.context import InProcessContext, in_process

__all__ = ["InProcessContext", "in_process"]
