#pragma once

#include <muster/value/value.h>

namespace torch::optim {
class Optimizer;
}

namespace muster {

/// All that a resumed run needs of an optimizer, for libtorch's SGD, Adam, AdamW, Adagrad, RMSprop
/// and LBFGS: `{"type", "groups": [{"options": {...}, "parameters": [{...} or null]}]}`, options
/// and states by the names that Python's torch gives them, parameters by their place in the group;
/// null is one that has had no gradient yet. Tensors are copies on the CPU.
///
/// Error of kind `usage` for another type of optimizer, also one derived from these.
Value optimizer_state(const torch::optim::Optimizer& optimizer);

/// Goes on from such a state, which is copied: with the same parameters, the next steps are those
/// of the saved optimizer to the bit. States take the type, device and strides of the optimizer's
/// parameters.
///
/// Error of kind `data` that names the first difference when type, number of groups or parameters,
/// or shapes are not the optimizer's; it is left as it was then. Of kind `usage` as above.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const Value& state);

}  // namespace muster
