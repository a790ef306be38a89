/** TABLE of the system calls that a caged decoder may make: the number on each kind of processor, null where
 * it has none.
 */

export const PROCESSORS = ["x86_64", "aarch64"] as const;

export type Processor = (typeof PROCESSORS)[number];

type Numbers = readonly [x86_64: number | null, aarch64: number | null];

/**
 * What ffmpeg, ffprobe, their libraries (glibc and musl) and the process 1 of bubblewrap need, whatever the
 * arguments. Everything that is in no table here is refused with ENOSYS.
 */
export const ALLOWED = {
  // Files. Which files there are is decided by the mounts.
  read: [0, 63],
  write: [1, 64],
  readv: [19, 65],
  writev: [20, 66],
  pread64: [17, 67],
  pwrite64: [18, 68],
  preadv: [295, 69],
  pwritev: [296, 70],
  open: [2, null],
  openat: [257, 56],
  close: [3, 57],
  stat: [4, null],
  fstat: [5, 80],
  lstat: [6, null],
  newfstatat: [262, 79],
  statx: [332, 291],
  access: [21, null],
  faccessat: [269, 48],
  faccessat2: [439, 439],
  lseek: [8, 62],
  readlink: [89, null],
  readlinkat: [267, 78],
  getcwd: [79, 17],
  getdents64: [217, 61],
  fcntl: [72, 25],
  dup: [32, 23],
  dup2: [33, null],
  dup3: [292, 24],
  pipe: [22, null],
  pipe2: [293, 59],
  ftruncate: [77, 46],
  fadvise64: [221, 223],
  statfs: [137, 43],
  fstatfs: [138, 44],
  fsync: [74, 82],
  fdatasync: [75, 83],
  // Memory.
  mmap: [9, 222],
  munmap: [11, 215],
  mprotect: [10, 226],
  mremap: [25, 216],
  madvise: [28, 233],
  brk: [12, 214],
  msync: [26, 227],
  mincore: [27, 232],
  membarrier: [324, 283],
  mlock: [149, 228],
  munlock: [150, 229],
  // Threads and the process itself.
  futex: [202, 98],
  set_robust_list: [273, 99],
  get_robust_list: [274, 100],
  set_tid_address: [218, 96],
  rseq: [334, 293],
  gettid: [186, 178],
  getpid: [39, 172],
  getppid: [110, 173],
  getpgrp: [111, null],
  tgkill: [234, 131],
  tkill: [200, 130],
  exit: [60, 93],
  exit_group: [231, 94],
  sched_yield: [24, 124],
  sched_getaffinity: [204, 123],
  sched_setaffinity: [203, 122],
  sched_getparam: [143, 121],
  sched_getscheduler: [145, 120],
  sched_get_priority_max: [146, 125],
  sched_get_priority_min: [147, 126],
  getpriority: [140, 141],
  arch_prctl: [158, null],
  getcpu: [309, 168],
  umask: [95, 166],
  // bubblewrap itself: starts the program, and waits for it.
  execve: [59, 221],
  wait4: [61, 260],
  waitid: [247, 95],
  // Signals.
  rt_sigaction: [13, 134],
  rt_sigprocmask: [14, 135],
  rt_sigreturn: [15, 139],
  rt_sigsuspend: [130, 133],
  rt_sigtimedwait: [128, 137],
  rt_sigpending: [127, 136],
  sigaltstack: [131, 132],
  restart_syscall: [219, 128],
  pause: [34, null],
  // Time and waiting.
  clock_gettime: [228, 113],
  clock_getres: [229, 114],
  clock_nanosleep: [230, 115],
  nanosleep: [35, 101],
  gettimeofday: [96, 169],
  time: [201, null],
  times: [100, 153],
  getrusage: [98, 165],
  poll: [7, null],
  ppoll: [271, 73],
  select: [23, null],
  pselect6: [270, 72],
  // What the system is.
  uname: [63, 160],
  sysinfo: [99, 179],
  getrandom: [318, 278],
  getuid: [102, 174],
  geteuid: [107, 175],
  getgid: [104, 176],
  getegid: [108, 177],
  getresuid: [118, 148],
  getresgid: [120, 150],
  getrlimit: [97, 163],
  // Connections that exist. Which may be made is decided by the arguments of `socket`; nothing listens.
  connect: [42, 203],
  sendto: [44, 206],
  recvfrom: [45, 207],
  shutdown: [48, 210],
  getsockopt: [55, 209],
  setsockopt: [54, 208],
  getsockname: [51, 204],
  getpeername: [52, 205],
} as const satisfies Record<string, Numbers>;

/** Allowed to a decoder with some arguments only: `filter.ts` says which. */
export const BY_ARGUMENT = {
  socket: [41, 198],
  ioctl: [16, 29],
  prctl: [157, 167],
  clone: [56, 220],
  prlimit64: [302, 261],
} as const satisfies Record<string, Numbers>;

/**
 * What neither the service needs nor a program that it starts, bubblewrap's and unshare's work on namespaces
 * included.
 */
export const REFUSED_TO_SERVICE = {
  // Other processes of the same user.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  // Keyrings, which containers share.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Files by number, past all mounts.
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // Large parts of the kernel that take programs or memory of a process.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  // The system itself.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  create_module: [174, null],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
  // Old ways of x86 to reach ports, segments and other personalities.
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  uselib: [134, null],
  nfsservctl: [180, 42],
  personality: [135, 92],
} as const satisfies Record<string, Numbers>;

/** Refused to the service with some arguments only: `service_filter.ts` says which. */
export const SERVICE_BY_ARGUMENT = {
  socket: BY_ARGUMENT.socket,
  ioctl: BY_ARGUMENT.ioctl,
  mknod: [133, null],
  mknodat: [259, 33],
} as const satisfies Record<string, Numbers>;

/** The number of a call on this kind of processor; null where it has none. */
export function numberOf(numbers: Numbers, processor: Processor): number | null {
  return numbers[PROCESSORS.indexOf(processor)]!;
}
