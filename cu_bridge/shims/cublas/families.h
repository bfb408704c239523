// What each family of functions.txt computes.
#pragma once

#include "extensions.h"
#include "level1.h"
#include "level2.h"
#include "level3.h"
