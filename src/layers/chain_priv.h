/* What laying out a chain's memory and running it have to agree on. See chain.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "layers/chain.h"

/* Layer i writes no outputs: those of the layer before it are its own. */
static inline bool shmt_chain_only_shapes(const struct shmt_chain *chain, uint32_t i) {
    return chain->clipped[i] || (chain->layer[i].kind->traits & SHMTRAIN_LAYER_NOTHING);
}

/* Whether backward is called for layer i, at or behind first_pushed. */
static inline bool shmt_chain_goes_back(const struct shmt_chain *chain, uint32_t i) {
    return !shmt_chain_only_shapes(chain, i) || (chain->layer[i].kind->traits & SHMTRAIN_LAYER_SAVES);
}

/* Whether layer i writes its d_in beside its d_out: into the other one of the two buffers of derivatives. */
static inline bool shmt_chain_flips(const struct shmt_chain *chain, uint32_t i) {
    return i > chain->first_pushed && shmt_chain_goes_back(chain, i) &&
           !(chain->layer[i].kind->traits & SHMTRAIN_LAYER_IN_PLACE);
}
