// Marks and ranges for a profiler: they go to the runtime of the simulated device where it is loaded. Without it they
// answer what NVTX answers without a tool: that nothing is tracked. A profiler of the device is told of the message and
// the domain; colours, payloads, categories and names of threads have no place there.
#pragma once
#define NVTOOLSEXT_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define NVTX_VERSION 3
#define NVTX_SUCCESS 0
#define NVTX_FAIL 1
#define NVTX_NO_PUSH_POP_TRACKING (-2)

typedef uint64_t nvtxRangeId_t;
// NULL as a domain is the one that functions without a domain use.
typedef struct nvtxDomainRegistration_st nvtxDomainRegistration;
typedef nvtxDomainRegistration* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st nvtxStringRegistration;
typedef nvtxStringRegistration* nvtxStringHandle_t;

typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t {
  NVTX_MESSAGE_UNKNOWN = 0,
  NVTX_MESSAGE_TYPE_ASCII = 1,
  NVTX_MESSAGE_TYPE_UNICODE = 2,
  NVTX_MESSAGE_TYPE_REGISTERED = 3
} nvtxMessageType_t;
typedef enum nvtxPayloadType_t {
  NVTX_PAYLOAD_UNKNOWN = 0,
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
  NVTX_PAYLOAD_TYPE_INT64 = 2,
  NVTX_PAYLOAD_TYPE_DOUBLE = 3,
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
  NVTX_PAYLOAD_TYPE_INT32 = 5,
  NVTX_PAYLOAD_TYPE_FLOAT = 6
} nvtxPayloadType_t;

typedef union nvtxMessageValue_t {
  const char* ascii;
  const wchar_t* unicode;
  nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct nvtxEventAttributes_v2 {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType;
  int32_t reserved0;
  union payload_t {
    uint64_t ullValue;
    int64_t llValue;
    double dValue;
    uint32_t uiValue;
    int32_t iValue;
    float fValue;
  } payload;
  int32_t messageType;
  nvtxMessageValue_t message;
} nvtxEventAttributes_v2;
typedef struct nvtxEventAttributes_v2 nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)(sizeof(nvtxEventAttributes_v2)))

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's function, declared here alone: this header is included where mc_runtime.h is not wanted. Kinds: 1 mark,
// 2 push, 3 pop, 4 start, 5 end.
#ifdef __CUDA_ARCH__  // no kernel marks anything, and a weak name would become a strong one where objects are joined
static int64_t (*const mxmacaProfileMark)(int kind, const char* domain, const char* name, unsigned long long range) = 0;
#else
extern int64_t mxmacaProfileMark(int kind, const char* domain, const char* name,
                                 unsigned long long range) __asm__("mcProfileMark") __attribute__((weak));
#endif

// ---- Text -----------------------------------------------------------------------------------------------------------

// A new string, in UTF-8; NULL without memory.
static inline char* mxmacaNarrow(const wchar_t* text) {
  const size_t most = text == 0 ? 1 : 4 * wcslen(text) + 1;
  char* const made = (char*)malloc(most);
  char* to = made;
  if (made == 0) return 0;
  for (; text != 0 && *text != 0; ++text) {
    const uint32_t point = (uint32_t)*text;
    const int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const unsigned char first[4] = {0, 0xc0, 0xe0, 0xf0};
    int i;
    *to++ = (char)(first[more] | (point >> (6 * more)));
    for (i = more - 1; i >= 0; --i) *to++ = (char)(0x80 | ((point >> (6 * i)) & 0x3f));
  }
  *to = 0;
  return made;
}
static inline char* mxmacaCopy(const char* text) {
  const size_t size = text == 0 ? 1 : strlen(text) + 1;
  char* const made = (char*)malloc(size);
  if (made != 0) memcpy(made, text == 0 ? "" : text, size);
  return made;
}
// Domains and registered strings are their text. They live as long as the process: ranges may name them at any time.
static inline int64_t mxmacaMark(int kind, nvtxDomainHandle_t domain, const char* name, unsigned long long range) {
  return mxmacaProfileMark ? mxmacaProfileMark(kind, (const char*)domain, name, range)
                           : (kind == 2 || kind == 3 ? NVTX_NO_PUSH_POP_TRACKING : 0);
}
static inline int64_t mxmacaMarkW(int kind, nvtxDomainHandle_t domain, const wchar_t* message) {
  char* const name = mxmacaNarrow(message);
  const int64_t result = mxmacaMark(kind, domain, name == 0 ? "" : name, 0);
  free(name);
  return result;
}
static inline int64_t mxmacaMarkEx(int kind, nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const int type = event == 0 ? NVTX_MESSAGE_UNKNOWN : (int)event->messageType;
  if (type == NVTX_MESSAGE_TYPE_UNICODE) return mxmacaMarkW(kind, domain, event->message.unicode);
  if (type == NVTX_MESSAGE_TYPE_ASCII && event->message.ascii != 0) {
    return mxmacaMark(kind, domain, event->message.ascii, 0);
  }
  if (type == NVTX_MESSAGE_TYPE_REGISTERED && event->message.registered != 0) {
    return mxmacaMark(kind, domain, (const char*)event->message.registered, 0);
  }
  return mxmacaMark(kind, domain, "", 0);
}

// ---- Domains and strings --------------------------------------------------------------------------------------------

static inline void nvtxInitialize(const void* reserved) { (void)reserved; }
static inline nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  return mxmacaProfileMark ? (nvtxDomainHandle_t)mxmacaCopy(name) : 0;
}
static inline nvtxDomainHandle_t nvtxDomainCreateW(const wchar_t* name) {
  return mxmacaProfileMark ? (nvtxDomainHandle_t)mxmacaNarrow(name) : 0;
}
static inline void nvtxDomainDestroy(nvtxDomainHandle_t domain) { (void)domain; }
static inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char* text) {
  (void)domain;
  return mxmacaProfileMark ? (nvtxStringHandle_t)mxmacaCopy(text) : 0;
}
static inline nvtxStringHandle_t nvtxDomainRegisterStringW(nvtxDomainHandle_t domain, const wchar_t* text) {
  (void)domain;
  return mxmacaProfileMark ? (nvtxStringHandle_t)mxmacaNarrow(text) : 0;
}

// ---- Marks and ranges -----------------------------------------------------------------------------------------------

static inline void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  mxmacaMarkEx(1, domain, event);
}
static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return (int)mxmacaMarkEx(2, domain, event);
}
static inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) { return (int)mxmacaMark(3, domain, 0, 0); }
static inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return (nvtxRangeId_t)mxmacaMarkEx(4, domain, event);
}
static inline void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id) { mxmacaMark(5, domain, 0, id); }

static inline void nvtxMarkA(const char* message) { mxmacaMark(1, 0, message, 0); }
static inline void nvtxMarkW(const wchar_t* message) { mxmacaMarkW(1, 0, message); }
static inline void nvtxMarkEx(const nvtxEventAttributes_t* event) { mxmacaMarkEx(1, 0, event); }
static inline int nvtxRangePushA(const char* message) { return (int)mxmacaMark(2, 0, message, 0); }
static inline int nvtxRangePushW(const wchar_t* message) { return (int)mxmacaMarkW(2, 0, message); }
static inline int nvtxRangePushEx(const nvtxEventAttributes_t* event) { return (int)mxmacaMarkEx(2, 0, event); }
static inline int nvtxRangePop(void) { return (int)mxmacaMark(3, 0, 0, 0); }
static inline nvtxRangeId_t nvtxRangeStartA(const char* message) { return (nvtxRangeId_t)mxmacaMark(4, 0, message, 0); }
static inline nvtxRangeId_t nvtxRangeStartW(const wchar_t* message) {
  return (nvtxRangeId_t)mxmacaMarkW(4, 0, message);
}
static inline nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t* event) {
  return (nvtxRangeId_t)mxmacaMarkEx(4, 0, event);
}
static inline void nvtxRangeEnd(nvtxRangeId_t id) { mxmacaMark(5, 0, 0, id); }

// ---- Names, which the profiler has no place for ---------------------------------------------------------------------

static inline void nvtxNameCategoryA(uint32_t category, const char* name) { (void)category, (void)name; }
static inline void nvtxNameCategoryW(uint32_t category, const wchar_t* name) { (void)category, (void)name; }
static inline void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  (void)domain, (void)category, (void)name;
}
static inline void nvtxDomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category, const wchar_t* name) {
  (void)domain, (void)category, (void)name;
}
static inline void nvtxNameOsThreadA(uint32_t thread, const char* name) { (void)thread, (void)name; }
static inline void nvtxNameOsThreadW(uint32_t thread, const wchar_t* name) { (void)thread, (void)name; }

#ifdef __cplusplus
}  // extern "C"
#endif

#if defined UNICODE
#define nvtxMark nvtxMarkW
#define nvtxRangePush nvtxRangePushW
#define nvtxRangeStart nvtxRangeStartW
#define nvtxDomainCreate nvtxDomainCreateW
#define nvtxDomainRegisterString nvtxDomainRegisterStringW
#define nvtxDomainNameCategory nvtxDomainNameCategoryW
#define nvtxNameCategory nvtxNameCategoryW
#define nvtxNameOsThread nvtxNameOsThreadW
#else
#define nvtxMark nvtxMarkA
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxDomainCreate nvtxDomainCreateA
#define nvtxDomainRegisterString nvtxDomainRegisterStringA
#define nvtxDomainNameCategory nvtxDomainNameCategoryA
#define nvtxNameCategory nvtxNameCategoryA
#define nvtxNameOsThread nvtxNameOsThreadA
#endif
