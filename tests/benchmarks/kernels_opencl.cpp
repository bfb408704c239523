// The kernels of kernels.cu in OpenCL, for PoCL: nanoseconds of processor time for each work item.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static const char* const kSource = R"(
kernel void saxpy(global float* x, global float* y) {
  int i = get_global_id(0);
  if (i < 131072) y[i] = 1e-9f * x[i] + y[i];
}
kernel void block_sum(global float* x, global float* out) {
  local float s[256];
  int t = get_local_id(0);
  s[t] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) out[get_group_id(0)] = s[0];
}
// PoCL's processor device has no shuffles: the lanes meet in local memory.
kernel void warp_sum(global float* x, global float* out) {
  local float s[256 + 16];
  int t = get_local_id(0);
  float v = x[get_global_id(0)];
  for (int o = 16; o > 0; o >>= 1) {
    s[t] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v += s[t + o];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t % 32 == 0) out[get_global_id(0) / 32] = v;
}
)";

static void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: OpenCL error %d\n", what, status);
  std::exit(2);
}
static double now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int, char** arguments) {
  const size_t n = 1 << 17, group = 256;
  const int rounds = std::atoi(arguments[1]), repeats = 50;
  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, nullptr), "no platform");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr), "no processor device");
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "context");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "queue");
  cl_program program = clCreateProgramWithSource(context, 1, const_cast<const char**>(&kSource), nullptr, &status);
  check(status, "program");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "build");
  std::vector<float> ones(n, 1.0F);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, n * 4, ones.data(), &status);
  check(status, "buffer");
  cl_mem y = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, n * 4, ones.data(), &status);
  check(status, "buffer");
  for (int round = 0; round < rounds; ++round) {
    for (const char* name : {"saxpy", "block_sum", "warp_sum"}) {
      cl_kernel kernel = clCreateKernel(program, name, &status);
      check(status, name);
      check(clSetKernelArg(kernel, 0, sizeof x, &x), name);
      check(clSetKernelArg(kernel, 1, sizeof y, &y), name);
      check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &n, &group, 0, nullptr, nullptr), name);
      check(clFinish(queue), name);
      const double before = now();
      for (int k = 0; k < repeats; ++k) {
        check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &n, &group, 0, nullptr, nullptr), name);
      }
      check(clFinish(queue), name);
      std::printf("%s %.5f\n", name, (now() - before) / repeats / n);
      clReleaseKernel(kernel);
    }
  }
}
