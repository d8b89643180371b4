"""A runtime that executes TFF computations in the Python process, clients on threads.

    from tff_het.backend.in_process import in_process

    with in_process(clients_in_parallel=2):
        state = process.initialize()
        output = process.next(state, client_data)

It serves computations whose blocks are TensorFlow without variables, as all of this project's.
There is no child process, nothing is serialised, and errors are TensorFlow's own, with the client
that met them. Arguments and results are those of TFF's own contexts.

Refused by name, with NotImplementedError and before any work: variables and other resources,
sequences (datasets), secure sums, selection, JAX computations and data handles; of arguments and
results, functions and one value for all clients (`all_equal`). The runtime `worker` of
`tff_het.simulation.runtime` executes what TFF does; `tff.learning`'s own algorithms need it. Where
this one departs from TFF's own contexts on purpose:

  * A struct whose names are not the type's, or in another order, is a TypeError. TFF goes by
    position and says nothing.
  * Results at CLIENTS of a call without clients are empty lists. TFF fails on them.

TensorFlow's stateful random operations (`tf.random.uniform`, Keras's dropout) draw from generators
of the thread that runs the client, even with a seed: use `tf.random.stateless_*` for results that
are to be repeated. If TensorFlow sees a GPU it runs on it; this is untested.

Modules: `context` (what TFF calls), `values` (arguments and results), `interpreter` (blocks to
Python functions), `graphs` and `rewriting` (TensorFlow's part of them), `threads` (one execution,
and who runs its clients).
"""

from tff_het.backend.in_process.context import InProcessContext, in_process, open_context

__all__ = ["InProcessContext", "in_process", "open_context"]
