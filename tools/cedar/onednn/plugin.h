/* What the module that measures oneDNN offers: one symbol, `cedar_product_api_of`. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cedar_product cedar_product;

typedef struct cedar_product_api {
  const char* (*name)(void);
  /* Nothing beyond AVX2 from now on; before the first make(). 0 if that is so. */
  int (*keep_to_avx2)(void);
  /* y [n, o] = x [n, k] * w^T of binary32 on `threads` threads, with weights of small numbers laid
     out as the library prefers. Null if it refuses. */
  cedar_product* (*make)(size_t n, size_t o, size_t k, int threads);
  /* Computes; 0 if it did. */
  int (*run)(cedar_product* made);
  void (*release)(cedar_product* made);
} cedar_product_api;

typedef const cedar_product_api* (*cedar_product_api_of_function)(void);

#define CEDAR_PRODUCT_SYMBOL "cedar_product_api_of"

#ifdef __cplusplus
}
#endif
