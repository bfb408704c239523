// Attributes of streams, and of graphs' kernel nodes.

#include "convert.h"
#include "launching/kept_attributes.h"

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return result(setStreamAttribute(own(stream), attribute, value));
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return result(getStreamAttribute(own(stream), attribute, value));
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return result(copyStreamAttributes(own(to), own(from)));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            const cudaKernelNodeAttrValue* value) {
  return result(setNodeAttribute(own(node), attribute, value));
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            cudaKernelNodeAttrValue* value) {
  return result(getNodeAttribute(own(node), attribute, value));
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return result(copyNodeAttributes(own(to), own(from)));
}

cudaError_t cudaCtxResetPersistingL2Cache(void) { return result(mcStickyError()); }

}  // extern "C"
#pragma GCC visibility pop
