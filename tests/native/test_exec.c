/* test_exec.c - execs verified at the exec stop, on the live kernel, with a
 * filter and a notification loop of its own. 0 pass, 1 fail, 77 skip.
 * `test_exec bench` prints the price of a verified and of a steered exec. */
#define _GNU_SOURCE
#include "effect/arch.h"
#include "effect/exec.h"
#include "effect/hash.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

/* ThreadSanitizer cannot follow a clone that shares memory, and holds signals back. */
#if defined(__SANITIZE_THREAD__)
enum { TSAN = 1 };
#else
enum { TSAN = 0 };
#endif

extern char **environ;

enum { EVIL = 67, BIG = 1 << 20, OUTCOMES = SV_EXEC_AGAIN + 1 };

static char dir[64];
static char good[96], evil[96], code[96], args_prog[96], steerme[96], script[96], plain[96],
	junk[96], none[96], env_code[96];
static int failures;

#define CHECK(cond) do { if (!(cond)) { failures++; \
	fprintf(stderr, "FAIL %s:%d %s\n", __FILE__, __LINE__, #cond); } } while (0)

/* ---- tiny programs, so that no compiler is needed ---- */

#if defined(__x86_64__)
/* exit(67); / exit(argv[1][0]); / exit(envp[0][0]), called with one argument */
static const uint8_t EXIT_N[] = { 0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
enum { EXIT_N_AT = 1, MACHINE = EM_X86_64 };
static const uint8_t EXIT_ARG[] = { 0x48, 0x8b, 0x7c, 0x24, 0x10, 0x0f, 0xb6, 0x3f,
				    0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t EXIT_ENV[] = { 0x48, 0x8b, 0x7c, 0x24, 0x18, 0x0f, 0xb6, 0x3f,
				    0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
#else
/* mov w0,#0 (imm16 << 5); mov x8,#93; svc 0 / ldr x0,[sp,#16]; ldrb w0,[x0]; ... */
static const uint8_t EXIT_N[] = { 0, 0, 0x80, 0x52, 0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4 };
enum { EXIT_N_AT = 0, MACHINE = EM_AARCH64 };
static const uint8_t EXIT_ARG[] = { 0xe0, 0x0b, 0x40, 0xf9, 0, 0, 0x40, 0x39,
				    0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4 };
static const uint8_t EXIT_ENV[] = { 0xe0, 0x0f, 0x40, 0xf9, 0, 0, 0x40, 0x39,
				    0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4 };
#endif

static void put_file(const char *path, const void *p, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	if (fd < 0 || write(fd, p, n) != (ssize_t)n || fchmod(fd, mode) < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static void put_elf(const char *path, const uint8_t *text, size_t n, int exit_code)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		uint8_t text[64];
	} f;
	uint64_t base = 0x400000;

	memset(&f, 0, sizeof(f));
	memcpy(f.e.e_ident, ELFMAG, SELFMAG);
	f.e.e_ident[EI_CLASS] = ELFCLASS64;
	f.e.e_ident[EI_DATA] = ELFDATA2LSB;
	f.e.e_ident[EI_VERSION] = EV_CURRENT;
	f.e.e_type = ET_EXEC;
	f.e.e_machine = MACHINE;
	f.e.e_version = EV_CURRENT;
	f.e.e_entry = base + offsetof(__typeof__(f), text);
	f.e.e_phoff = offsetof(__typeof__(f), p);
	f.e.e_ehsize = sizeof(f.e);
	f.e.e_phentsize = sizeof(f.p);
	f.e.e_phnum = 1;
	f.p = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = base,
			    .p_paddr = base, .p_filesz = sizeof(f), .p_memsz = sizeof(f),
			    .p_align = 0x10000 };
	memcpy(f.text, text, n);
	if (exit_code >= 0) {
#if defined(__x86_64__)
		f.text[EXIT_N_AT] = (uint8_t)exit_code;
#else
		f.text[EXIT_N_AT] = (uint8_t)((exit_code & 7) << 5);
		f.text[EXIT_N_AT + 1] = (uint8_t)(exit_code >> 3);
#endif
	}
	put_file(path, &f, sizeof(f), 0700);
}

static void put_self(const char *path)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p;

	fstat(in, &st);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
	put_file(path, p, (size_t)st.st_size, 0700);
	munmap(p, (size_t)st.st_size);
	close(in);
}

static void make_files(void)
{
	char text[] = "#!/bin/sh -u\nexit $(($1 + $#))\n";

	snprintf(dir, sizeof(dir), "/tmp/test-exec-XXXXXX");
	if (!mkdtemp(dir))
		exit(1);
	snprintf(good, sizeof(good), "%s/good", dir);
	snprintf(evil, sizeof(evil), "%s/evil", dir);
	snprintf(code, sizeof(code), "%s/code", dir);
	snprintf(env_code, sizeof(env_code), "%s/envc", dir);
	snprintf(args_prog, sizeof(args_prog), "%s/args", dir);
	snprintf(steerme, sizeof(steerme), "%s/steerme", dir);
	snprintf(script, sizeof(script), "%s/script", dir);
	snprintf(plain, sizeof(plain), "%s/plain", dir);
	snprintf(junk, sizeof(junk), "%s/junk", dir);
	snprintf(none, sizeof(none), "%s/none", dir);
	put_elf(good, EXIT_N, sizeof(EXIT_N), 0);
	put_elf(evil, EXIT_N, sizeof(EXIT_N), EVIL);
	put_elf(steerme, EXIT_N, sizeof(EXIT_N), EVIL);
	put_elf(code, EXIT_ARG, sizeof(EXIT_ARG), -1);
	put_elf(env_code, EXIT_ENV, sizeof(EXIT_ENV), -1);
	put_self(args_prog);
	put_file(script, text, sizeof(text) - 1, 0700);
	put_file(plain, "x", 1, 0600);
	put_file(junk, "\1\2\3\4", 4, 0700);
}

static void remove_files(void)
{
	const char *all[] = { good, evil, code, env_code, args_prog, steerme, script, plain, junk };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		unlink(all[i]);
	rmdir(dir);
}

/* ---- the supervisor under test ---- */

struct options {
	bool naive;		/* check the string, then continue: the control */
	bool argv;		/* compare argv */
	bool no_maps;		/* may_map says no */
	bool not_killable;
	bool bare;		/* no filter at all */
	const char *to;		/* steer of `steerme` */
	const char *to_argv;
	size_t to_argv_len;
	const char *to_env;	/* NULL = the caller's */
	size_t to_env_len;
	int pin;		/* 1 = the image's own digest is asked for, 2 = another one */
};

static struct {
	struct options o;
	struct sv_tracer *t;
	int listener;
	int quit;
	pid_t child;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool over;
	int status;
	atomic_long outcome[OUTCOMES];
	atomic_long submitted;
	int last_err;
	char last_why[128];
	char last_argv[4096];
	size_t last_argv_n;
} S = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static int install(bool killable)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(f[0]), f };
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;

	if (killable)
		flags |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static void send_fd(int sock, int fd)
{
	char byte = 0, ctl[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	sendmsg(sock, &m, 0);
}

static int recv_fd(int sock)
{
	char byte, ctl[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static size_t read_mem(pid_t pid, uint64_t addr, char *buf, size_t cap)
{
	size_t n = 0;

	while (n < cap) {
		size_t step = 4096 - ((addr + n) & 4095);
		struct iovec lo, re;
		ssize_t got;

		if (step > cap - n)
			step = cap - n;
		lo = (struct iovec){ buf + n, step };
		re = (struct iovec){ (void *)(uintptr_t)(addr + n), step };
		got = process_vm_readv(pid, &lo, 1, &re, 1, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static char *copy(const void *p, size_t n)
{
	char *s = malloc(n + 1);

	memcpy(s, p, n);
	s[n] = 0;
	return s;
}

static void read_argv(struct sv_exec_plan *p, uint64_t addr)
{
	char *out = calloc(1, 8192), word[2048];
	uint64_t ptr;

	while (read_mem(p->tid, addr, (char *)&ptr, sizeof(ptr)) == sizeof(ptr) && ptr) {
		size_t n = strnlen(word, read_mem(p->tid, ptr, word, sizeof(word)));

		if (p->argv_len + n + 1 > 8192)
			break;
		memcpy(out + p->argv_len, word, n);
		p->argv_len += n + 1;
		addr += sizeof(ptr);
	}
	p->argv = out;
	p->check_argv = true;
}

static void judge_script(struct sv_exec_plan *p, const char *path)
{
	const char head[] = "/bin/sh\0-u";
	struct stat st;

	if (strcmp(path, script) != 0)
		return;
	p->script = true;
	p->head_len = sizeof(head) + strlen(path) + 1;
	p->head = calloc(1, p->head_len);
	memcpy(p->head, head, sizeof(head));
	memcpy(p->head + sizeof(head), path, strlen(path));
	stat("/bin/sh", &st);
	p->dev = st.st_dev;
	p->ino = st.st_ino;
}

static void answer(uint64_t id, int error, uint32_t flags)
{
	struct seccomp_notif_resp r = { .id = id, .error = error, .flags = flags };

	ioctl(S.listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

static void submit(struct sv_exec_plan *p)
{
	atomic_fetch_add(&S.submitted, 1);
	sv_tracer_submit(S.t, p);
}

static void ask_digest(struct sv_exec_plan *p)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", p->pin_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && sv_hash_file(fd, NULL, p->digest) == 0);
	close(fd);
	p->digest[0] ^= S.o.pin == 2;
	p->pinned = true;
}

static void judge_exec(struct sv_exec_plan *p, const char *path)
{
	const char *image = path;
	struct stat st = { 0 };

	if (S.o.to && strcmp(path, steerme) == 0) {
		p->kind = SV_PLAN_STEER;
		p->new_path = copy(S.o.to, strlen(S.o.to));
		p->new_path_len = strlen(S.o.to);
		p->new_argv = copy(S.o.to_argv, S.o.to_argv_len);
		p->new_argv_len = S.o.to_argv_len;
		if (S.o.to_env) {
			p->set_env = true;
			p->new_env = copy(S.o.to_env, S.o.to_env_len);
			p->new_env_len = S.o.to_env_len;
		}
		image = S.o.to;
	} else if (p->nr == SYS_execve) {
		p->execfn = copy(path, strlen(path));
		p->execfn_len = strlen(path);
	}
	p->pin_fd = open(image, O_PATH | O_CLOEXEC);
	if (p->pin_fd >= 0 && fstat(p->pin_fd, &st) == 0) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
	judge_script(p, image);
	if (S.o.argv && p->kind == SV_PLAN_VERIFY && !p->argv)
		read_argv(p, p->args[p->nr == SYS_execve ? 1 : 2]);
	if (S.o.pin && p->pin_fd >= 0)
		ask_digest(p);
	submit(p);
}

/* The program that exits with its argument must not get this one. */
static bool evil_argument(struct sv_exec_plan *p, const char *path)
{
	if (strcmp(path, code) != 0)
		return false;
	read_argv(p, p->args[1]);
	return p->argv_len > 2 && p->argv[strlen(p->argv) + 1] == EVIL;
}

static void rewrite(struct sv_exec_plan *p)
{
	p->kind = SV_PLAN_REWRITE;
	p->new_nr = SYS_getsid;
	memcpy(p->new_args, p->args, sizeof(p->new_args));
	p->new_args[0] = 0;
	submit(p);
}

static void read_path(const struct sv_call *c, char *path, size_t cap)
{
	if (c->nr == SYS_execveat && c->args[4] & AT_EMPTY_PATH)
		snprintf(path, cap, "/proc/%d/fd/%d", c->tid, (int)c->args[0]);
	else
		path[read_mem(c->tid, c->args[c->nr == SYS_execve ? 0 : 1], path, cap - 1)] = 0;
}

static void handle(const struct seccomp_notif *q)
{
	struct sv_call call = { .id = q->id, .tid = (pid_t)q->pid, .nr = q->data.nr };
	struct sv_exec_plan *p;
	char path[4096] = "";

	for (int i = 0; i < SV_ARGS; i++)
		call.args[i] = q->data.args[i];
	if (sv_tracer_reentry(S.t, &call))
		return;
	p = sv_exec_plan_new();
	p->id = call.id;
	p->tid = call.tid;
	p->nr = call.nr;
	memcpy(p->args, call.args, sizeof(p->args));
	if (call.nr == SYS_getpgid) {
		rewrite(p);
		return;
	}
	read_path(&call, path, sizeof(path));
	bool no = strcmp(path, evil) == 0 || path[0] != '/' || evil_argument(p, path);
	if (no || S.o.naive) {
		answer(q->id, no ? -EACCES : 0, no ? 0u : (uint32_t)SECCOMP_USER_NOTIF_FLAG_CONTINUE);
		sv_exec_plan_free(p);
		return;
	}
	judge_exec(p, path);
}

static void *loop(void *arg)
{
	struct pollfd pfd[2] = { { S.listener, POLLIN, 0 }, { S.quit, POLLIN, 0 } };

	(void)arg;
	while (poll(pfd, 2, -1) >= 0 && !pfd[1].revents) {
		struct seccomp_notif q;

		memset(&q, 0, sizeof(q));
		if (pfd[0].revents & POLLIN) {
			if (ioctl(S.listener, SECCOMP_IOCTL_NOTIF_RECV, &q) == 0)
				handle(&q);
		} else if (pfd[0].revents) {
			pfd[0].fd = -1;
		}
	}
	return NULL;
}

static bool on_map(void *ctx, const struct sv_exec_plan *plan, struct sv_str path)
{
	(void)ctx;
	(void)plan;
	return path.n && !S.o.no_maps;
}

static void on_done(void *ctx, const struct sv_exec_plan *plan, const struct sv_exec_result *r)
{
	(void)ctx;
	(void)plan;
	pthread_mutex_lock(&S.lock);
	atomic_fetch_add(&S.outcome[r->outcome], 1);
	S.last_err = r->err;
	snprintf(S.last_why, sizeof(S.last_why), "%s", r->why ? r->why : "");
	S.last_argv_n = r->argv.n;
	if (r->argv.n)
		memcpy(S.last_argv, r->argv.p, r->argv.n);
	pthread_mutex_unlock(&S.lock);
}

static void on_child(void *ctx, pid_t pid, int status)
{
	(void)ctx;
	if (pid != S.child)
		return;
	pthread_mutex_lock(&S.lock);
	S.over = true;
	S.status = status;
	pthread_cond_signal(&S.ended);
	pthread_mutex_unlock(&S.lock);
}

static const struct sv_tracer_ops OPS = { on_map, on_done, on_child };

static pid_t spawn_target(const struct options *o, int (*fn)(void *), void *arg, int *sock)
{
	int sp[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) < 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		sigset_t empty;
		char go;
		int fd;

		sigemptyset(&empty);
		sigprocmask(SIG_SETMASK, &empty, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = o->bare ? eventfd(0, 0) : install(!o->not_killable);
		if (fd < 0)
			_exit(77);
		send_fd(sp[1], fd);
		close(fd);
		if (read(sp[1], &go, 1) != 1)
			_exit(1);
		_exit(fn(arg));
	}
	close(sp[1]);
	*sock = sp[0];
	return pid;
}

static void begin(const struct options *o, int (*fn)(void *), void *arg, pthread_t *worker)
{
	struct sv_err err = { 0 };
	int sock;

	S.o = *o;
	S.over = false;
	atomic_store(&S.submitted, 0);
	for (int i = 0; i < OUTCOMES; i++)
		atomic_store(&S.outcome[i], 0);
	S.child = spawn_target(o, fn, arg, &sock);
	S.listener = recv_fd(sock);
	if (S.listener < 0) {
		fprintf(stderr, "SKIP: no seccomp listener here\n");
		exit(77);
	}
	uint64_t sync = 1;
	ioctl(S.listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, sync);
	S.quit = eventfd(0, EFD_CLOEXEC);
	S.t = sv_tracer_start(S.listener, !o->not_killable, &OPS, NULL, &err);
	if (!S.t) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	pthread_create(worker, NULL, loop, NULL);
	if (write(sock, "g", 1) != 1)
		exit(1);
	close(sock);
}

static long total(void)
{
	long n = 0;

	for (int i = 0; i < OUTCOMES; i++)
		n += atomic_load(&S.outcome[i]);
	return n;
}

static void finish(pthread_t worker)
{
	uint64_t one = 1;

	for (int i = 0; i < 2000 && sv_tracer_children(S.t) > 0; i++)
		usleep(1000);
	if (write(S.quit, &one, sizeof(one)) < 0)
		exit(1);
	pthread_join(worker, NULL);
	for (int i = 0; i < 2000 && total() < atomic_load(&S.submitted); i++)
		usleep(1000);
	CHECK(sv_tracer_children(S.t) == 0);
	CHECK(total() == atomic_load(&S.submitted));
	sv_tracer_stop(S.t);
	close(S.quit);
	close(S.listener);
}

/* Runs fn in a target; its wait status. A hang is a failure after 60 s. */
static int run_named(const char *name, const struct options *o, int (*fn)(void *), void *arg)
{
	struct timespec until;
	pthread_t worker;

	begin(o, fn, arg, &worker);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&S.lock);
	while (!S.over)
		if (pthread_cond_timedwait(&S.ended, &S.lock, &until) == ETIMEDOUT) {
			fprintf(stderr, "FAIL: target %s hangs\n", name);
			failures++;
			kill(S.child, SIGKILL);
			until.tv_sec += 5;
		}
	pthread_mutex_unlock(&S.lock);
	finish(worker);
	if (getenv("TEST_EXEC_VERBOSE"))
		fprintf(stderr, "%-14s submitted %ld ran %ld failed %ld killed %ld gone %ld "
			"refused %ld again %ld\n", name, S.submitted, S.outcome[0], S.outcome[1],
			S.outcome[2], S.outcome[3], S.outcome[4], S.outcome[5]);
	return S.status;
}

#define run(o, fn, arg) run_named(#fn, o, fn, arg)

static bool exited(int status, int with)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == with)
		return true;
	fprintf(stderr, "status %x, wanted exit %d; why: %s\n", status, with, S.last_why);
	return false;
}

/* ---- inside the target ---- */

static int wait_code(pid_t pid)
{
	int st;

	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return 254;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static int spawn(bool share, const char *path, char *const argv[])
{
	pid_t pid = share ? vfork() : fork();

	if (pid == 0) {
		execve(path, argv, environ);
		_exit(100 + (errno & 31));
	}
	return wait_code(pid);
}

static char *const ARGV_GOOD[] = { (char *)"good", (char *)"one", (char *)"", NULL };

static int t_plain(void *arg)
{
	execve(arg, ARGV_GOOD, environ);
	return 100;
}

static int t_vfork(void *arg)
{
	return spawn(true, arg, ARGV_GOOD);
}

static int t_fail(void *arg)
{
	execve(arg, ARGV_GOOD, environ);
	return errno;
}

static void *exec_thread(void *arg)
{
	execve(arg, ARGV_GOOD, environ);
	_exit(100);
}

static int t_thread(void *arg)
{
	pthread_t th;

	pthread_create(&th, NULL, exec_thread, arg);
	pause();
	return 101;
}

static int t_many_threads(void *arg)
{
	int bad = 0;

	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pthread_t th;

			for (int k = 0; k < 4; k++)
				pthread_create(&th, NULL, exec_thread, k == 1 ? none : arg);
			for (;;)
				pause();
		}
		/* One of the threads may meet the missing file first. */
		int c = wait_code(pid);
		bad += c != 0 && c != 100;
	}
	return bad;
}

static int t_script(void *arg)
{
	char *const argv[] = { (char *)"x", (char *)"40", (char *)"b", NULL };

	return spawn(false, arg, argv);
}

static int t_by_fd(void *arg)
{
	int fd = open(arg, O_PATH | O_CLOEXEC);

	syscall(SYS_execveat, fd, "", ARGV_GOOD, environ, AT_EMPTY_PATH);
	return 100;
}

struct race {
	int tries;
	long ran, stopped, killed, denied;
	bool argv;
	bool steer;
	bool env;
};

static volatile char *shared_text;

/* Where the tracer put its strings, from the target's own memory map. */
static char *find_scratch(void)
{
	char line[512];
	char *found = NULL;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from >= SV_SCRATCH_LOW &&
		    from < SV_SCRATCH_LOW + SV_SCRATCH_SPAN && to - from == 65536)
			found = (char *)from;
	}
	if (f)
		fclose(f);
	return found;
}

/* Overwrites the steered path in every slot: two pointers stand before it. Or the one
 * string of the environment: four pointers, the path and an argument stand before that. */
static void *scratch_flipper(void *arg)
{
	const struct race *r = arg;
	char *base = NULL;

	while (!(base = find_scratch()))
		usleep(100);
	for (int i = 0;; i++)
		for (int k = 1; k <= 15; k++) {
			char *slot = base + 4096 * k + (r->env ? 32 : 16);

			if (slot[0] == '/' && r->env)
				slot[strlen(env_code) + 3] = i & 64 ? 'a' : EVIL;
			else if (slot[0] == '/')
				memcpy(slot, i & 64 ? good : evil, strlen(good) + 1);
		}
	return NULL;
}

static void *flipper(void *arg)
{
	struct race *r = arg;
	size_t n = strlen(good) + 1;

	/* Equally long names: no moment with a third one. */
	for (;;) {
		for (int i = 0; i < 40; i++)
			if (r->argv)
				shared_text[0] = 'a';
			else
				memcpy((char *)shared_text, good, n);
		for (int i = 0; i < 40; i++)
			if (r->argv)
				shared_text[0] = EVIL;
			else
				memcpy((char *)shared_text, evil, n);
	}
	return NULL;
}

static int race_child(void *arg)
{
	struct race *r = arg;
	char *argv[] = { (char *)"x", r->argv ? (char *)shared_text : NULL, NULL };
	char *envp[] = { NULL };

	syscall(SYS_execve, r->steer ? steerme : r->argv ? code : (char *)shared_text, argv, envp);
	_exit(55);
}

static int t_race(void *arg)
{
	struct race *r = arg;
	char *stack = malloc(65536);
	pthread_t th;

	shared_text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy((char *)shared_text, r->argv ? "a" : good, r->argv ? 2 : strlen(good) + 1);
	pthread_create(&th, NULL, r->steer ? scratch_flipper : flipper, r);
	for (int i = 0; i < r->tries; i++) {
		pid_t pid = clone(race_child, stack + 65536 - 64, CLONE_VM | SIGCHLD, r);
		int c = wait_code(pid);

		if (c == EVIL)
			r->ran++;
		else if (c == 128 + SIGKILL)
			r->killed++;
		else if (c == 55)
			r->denied++;
		else
			r->stopped++;
	}
	return 0;
}

struct steer {
	int want;
	int times;
	bool share;
	int grown;		/* mappings left in the caller, after the first */
};

static int count_maps(void)
{
	char buf[4096];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), n = 0;
	ssize_t got;

	while ((got = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < got; i++)
			n += buf[i] == '\n';
	close(fd);
	return n;
}

static int t_steer(void *arg)
{
	struct steer *s = arg;
	int bad = 0, before = 0;

	for (int i = 0; i < s->times; i++) {
		bad += spawn(s->share, steerme, ARGV_GOOD) != s->want;
		if (i == 0)
			before = count_maps();
	}
	s->grown = count_maps() - before;
	return bad;
}

static int t_steer_fail(void *arg)
{
	sigset_t mask = { 0 }, old = { 0 };
	char name[96];

	(void)arg;
	snprintf(name, sizeof(name), "%s", steerme);
	sigprocmask(SIG_SETMASK, NULL, &old);
	for (int i = 0; i < 20; i++) {
		/* The caller's own argument registers must come back. */
		uint64_t ret = 0, a = (uint64_t)(uintptr_t)name, b = (uint64_t)(uintptr_t)ARGV_GOOD;
#if defined(__x86_64__)
		__asm__ volatile("syscall" : "=a"(ret), "+D"(a), "+S"(b)
				 : "0"((uint64_t)SYS_execve), "d"(environ)
				 : "rcx", "r11", "memory");
#else
		ret = (uint64_t)(syscall(SYS_execve, name, ARGV_GOOD, environ) < 0 ? -errno : 0);
#endif
		if (ret != (uint64_t)-ENOENT || a != (uint64_t)(uintptr_t)name ||
		    b != (uint64_t)(uintptr_t)ARGV_GOOD)
			return 1;
	}
	sigprocmask(SIG_SETMASK, NULL, &mask);
	return memcmp(&mask, &old, sizeof(mask)) ? 2 : 0;
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* A timer's storm over execs that fail: each must fail as it does natively. */
static int t_storm_fail(void *arg)
{
	struct itimerval it = { { 0, 300 }, { 0, 300 } };
	struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_RESTART };
	int bad = 0;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	for (int i = 0; i < 300; i++) {
		execve(arg, ARGV_GOOD, environ);
		bad += errno != ENOENT;
	}
	return bad ? 1 : ticks < 20 && !TSAN ? 2 : 0;
}

/* Signals hit a task all through its exec; the new program ignores them. */
static int t_storm_ok(void *arg)
{
	/* Without SA_RESTART any notified call can meet an EINTR of seccomp's own. */
	struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_RESTART };
	int bad = 0;

	sigaction(SIGURG, &sa, NULL);
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		siginfo_t si;

		if (pid == 0) {
			execve(arg, ARGV_GOOD, environ);
			_exit(100 + (errno & 31));
		}
		do {
			kill(pid, SIGURG);
			usleep(40);
			si.si_pid = 0;
			waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT);
		} while (si.si_pid == 0);
		bad += wait_code(pid) != 0;
	}
	return bad;
}

static int t_stops(void *arg)
{
	int bad = 0;

	for (int i = 0; i < 150; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execve(arg, ARGV_GOOD, environ);
			_exit(100 + (errno & 31));
		}
		usleep((useconds_t)(i * 7 % 500));
		kill(pid, SIGSTOP);
		usleep(300);
		kill(pid, SIGCONT);
		bad += wait_code(pid) != 0;
	}
	return bad;
}

static int t_kill(void *arg)
{
	int bad = 0;

	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();
		int c;

		if (pid == 0) {
			execve(i & 1 ? steerme : arg, ARGV_GOOD, environ);
			_exit(100 + (errno & 31));
		}
		usleep((useconds_t)(i * 13 % 900));
		kill(pid, SIGKILL);
		c = wait_code(pid);
		bad += c != 0 && c != 128 + SIGKILL;
	}
	return bad;
}

static int t_traced(void *arg)
{
	int st, ready[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		if (read(ready[0], &c, 1) != 1)
			_exit(1);
		execve(arg, ARGV_GOOD, environ);
		_exit(errno);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || write(ready[1], "g", 1) != 1)
		return 2;
	while (waitpid(pid, &st, __WALL) == pid && WIFSTOPPED(st))
		ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(st) == SIGTRAP ? 0 : WSTOPSIG(st));
	return WIFEXITED(st) && WEXITSTATUS(st) == EACCES ? 0 : 3;
}

/* getpgid(arg) becomes getsid(0); the caller's register must survive. */
static int t_rewrite(void *arg)
{
	int bad = 0;

	(void)arg;
	setsid();
	for (int i = 0; i < 50; i++) {
		uint64_t ret, a = 0x12345678;
#if defined(__x86_64__)
		__asm__ volatile("syscall" : "=a"(ret), "+D"(a) : "0"((uint64_t)SYS_getpgid)
				 : "rcx", "r11", "memory");
#else
		ret = (uint64_t)syscall(SYS_getpgid, a);
#endif
		bad += ret != (uint64_t)getpid() || a != 0x12345678;
	}
	return bad;
}

static int t_orphan(void *arg)
{
	if (fork() == 0) {
		if (fork() == 0) {
			usleep(20000);
			execve(arg, ARGV_GOOD, environ);
		}
		_exit(0);
	}
	return 0;
}

static int t_forever(void *arg)
{
	pid_t parent = getpid();

	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* It may have died before it could be told of. */
			if (getppid() != parent)
				_exit(0);
			break;
		}
	for (;;)
		spawn(true, arg, ARGV_GOOD);
	return 0;
}

/* ---- the tests ---- */

static void test_plain(void)
{
	struct options o = { .argv = true };
	const char want[] = "good\0one\0";

	CHECK(exited(run(&o, t_plain, good), 0));
	CHECK(S.outcome[SV_EXEC_RAN] == 1 && total() == 1);
	CHECK(S.last_argv_n == sizeof(want) && memcmp(S.last_argv, want, sizeof(want)) == 0);
	CHECK(exited(run(&o, t_vfork, good), 0));
	CHECK(exited(run(&o, t_thread, good), 0));
	CHECK(S.outcome[SV_EXEC_RAN] == 1);
	CHECK(exited(run(&o, t_by_fd, good), 0));
	CHECK(exited(run(&o, t_orphan, good), 0));
	CHECK(S.outcome[SV_EXEC_RAN] == 1);
	CHECK(exited(run(&o, t_many_threads, good), 0));
}

static void test_fail(void)
{
	struct options o = { .argv = true };
	const struct { const char *path; int err; } c[] = {
		{ none, ENOENT }, { plain, EACCES }, { junk, ENOEXEC } };

	for (int i = 0; i < 3; i++) {
		CHECK(exited(run(&o, t_fail, (void *)(uintptr_t)c[i].path), c[i].err));
		CHECK(S.outcome[SV_EXEC_FAILED] == 1 && S.last_err == c[i].err);
	}
}

static void test_script(void)
{
	struct options o = { .argv = true };

	CHECK(exited(run(&o, t_script, script), 42));
	CHECK(S.outcome[SV_EXEC_RAN] == 1);
}

static void test_loader(void)
{
	struct options o = { .no_maps = true };

	CHECK(exited(run(&o, t_vfork, args_prog), 128 + SIGKILL));
	CHECK(S.outcome[SV_EXEC_KILLED] == 1);
	/* A static program has no loader. */
	CHECK(exited(run(&o, t_vfork, good), 0));
}

static void race(const char *what, const struct race *kind, bool naive)
{
	struct race *r = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct options o = { .naive = naive, .argv = kind->argv };

	if (kind->steer)
		o = (struct options){ .to = kind->env ? env_code : good, .to_argv = "x",
				      .to_argv_len = 2, .to_env = kind->env ? "a" : NULL,
				      .to_env_len = 2 };
	*r = *kind;
	CHECK(exited(run(&o, t_race, r), 0));
	printf("race of %s, %s: %d tries, forbidden ran %ld, allowed ran %ld, refused %ld, "
	       "killed %ld\n", what, naive ? "string checked only" : "verified", r->tries, r->ran,
	       r->stopped, r->denied, r->killed);
	CHECK(naive ? r->ran > 0 : r->ran == 0);
	CHECK(r->stopped > 0);
	if (!naive)
		CHECK(r->killed > 0 && r->killed == S.outcome[SV_EXEC_KILLED]);
	munmap(r, 4096);
}

static void races(void)
{
	race("path", &(struct race){ .tries = 1000 }, true);
	race("path", &(struct race){ .tries = 3000 }, false);
	race("argv", &(struct race){ .tries = 1000, .argv = true }, true);
	race("argv", &(struct race){ .tries = 3000, .argv = true }, false);
	race("steered path", &(struct race){ .tries = 3000, .steer = true }, false);
	race("steered environment", &(struct race){ .tries = 3000, .steer = true, .env = true },
	     false);
}

static void test_steer(void)
{
	const char small[] = "x\0Zed";
	char *big = malloc(BIG + 64);
	size_t n = (size_t)snprintf(big, 64, "x%c%d", 0, BIG) + 1;
	struct steer *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < BIG; i++)
		big[n + i] = i % 1000 == 999 || i + 1 == BIG ? 0 : 'q';
	for (int share = 0; share < 2; share++) {
		struct options o = { .to = code, .to_argv = small, .to_argv_len = sizeof(small) };

		*s = (struct steer){ .want = 'Z', .times = 100, .share = share };
		CHECK(exited(run(&o, t_steer, s), 0));
		CHECK(S.outcome[SV_EXEC_RAN] == 100 && total() == 100);
		/* Whatever the parent of vfork children keeps, it keeps once. */
		CHECK(s->grown == 0);
		o = (struct options){ .to = args_prog, .to_argv = big, .to_argv_len = n + BIG };
		*s = (struct steer){ .want = 0, .times = 5, .share = share };
		CHECK(exited(run(&o, t_steer, s), 0));
		CHECK(S.outcome[SV_EXEC_RAN] == 5 && s->grown == 0);
	}
	struct options gone = { .to = none, .to_argv = small, .to_argv_len = sizeof(small) };
	CHECK(exited(run(&gone, t_steer_fail, NULL), 0));
	CHECK(S.outcome[SV_EXEC_FAILED] == 20 && S.last_err == ENOENT);
	munmap(s, 4096);
	free(big);
}

static void test_pin(void)
{
	struct options right = { .pin = 1 }, wrong = { .pin = 2 };

	CHECK(exited(run(&right, t_vfork, good), 0) && S.outcome[SV_EXEC_RAN] == 1);
	CHECK(exited(run(&wrong, t_vfork, good), 128 + SIGKILL) && S.outcome[SV_EXEC_KILLED] == 1);
	CHECK(strstr(S.last_why, "sha256"));
}

static void test_signals(bool not_killable, int pin)
{
	const char small[] = "x\0";
	struct options o = { .not_killable = not_killable, .to = good, .to_argv = small,
			     .to_argv_len = 2, .pin = pin };

	CHECK(exited(run(&o, t_storm_fail, none), 0));
	CHECK(exited(run(&o, t_storm_ok, good), 0));
	CHECK(exited(run(&o, t_storm_ok, steerme), 0));
	CHECK(exited(run(&o, t_stops, good), 0));
	CHECK(exited(run(&o, t_stops, steerme), 0));
	CHECK(exited(run(&o, t_kill, good), 0));
	o.to = none;
	CHECK(exited(run(&o, t_storm_fail, steerme), 0));
}

static void test_refused(void)
{
	struct options o = { .argv = true };

	CHECK(exited(run(&o, t_traced, good), 0));
	CHECK(S.outcome[SV_EXEC_REFUSED] == 1);
}

static void test_rewrite(void)
{
	struct options o = { .argv = false };

	CHECK(exited(run(&o, t_rewrite, NULL), 0));
	CHECK(S.outcome[SV_EXEC_FAILED] == 50 && S.last_err == 0);
}

/* Stopping in the middle leaves nothing that runs unverified and no plan. */
static void test_stop(int pin)
{
	struct options o = { .pin = pin };

	for (int i = 0; i < 5; i++) {
		pthread_t worker;
		uint64_t one = 1;

		begin(&o, t_forever, good, &worker);
		usleep(20000);
		if (write(S.quit, &one, sizeof(one)) < 0)
			exit(1);
		pthread_join(worker, NULL);
		sv_tracer_stop(S.t);
		CHECK(total() == S.submitted);
		close(S.quit);
		close(S.listener);
		kill(S.child, SIGKILL);
		for (pid_t pid; (pid = waitpid(-1, NULL, __WALL)) > 0;)
			continue;
		CHECK(errno == ECHILD);
	}
}

/* ---- the price ---- */

struct bench {
	atomic_int turn;	/* 0 rest, 1 go, 2 end */
	const char *path;
	long ns;
};

static long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static int t_bench(void *arg)
{
	struct bench *b = arg;
	int turn;

	while ((turn = atomic_load(&b->turn)) != 2) {
		if (turn == 0) {
			usleep(20);
			continue;
		}
		long t0 = now_ns();
		spawn(true, b->path, ARGV_GOOD);
		b->ns = now_ns() - t0;
		atomic_store(&b->turn, 0);
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static long one_round(struct bench *b, const char *path)
{
	b->path = path;
	atomic_store(&b->turn, 1);
	while (atomic_load(&b->turn) != 0)
		usleep(20);
	return b->ns;
}

static void bench(void)
{
	enum { ROUNDS = 1000 };
	static long ns[4][ROUNDS];
	const char *names[] = { "native", "verified", "steered", "continued" };
	const char small[] = "x\0";
	struct options bare = { .bare = true }, o = { .argv = true, .to = good, .to_argv = small,
						     .to_argv_len = 2 };
	struct bench *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t worker;
	int sock;
	pid_t pid = spawn_target(&bare, t_bench, &b[0], &sock);

	close(recv_fd(sock));
	begin(&o, t_bench, &b[1], &worker);
	if (write(sock, "g", 1) != 1)
		exit(1);
	for (int i = 0; i < ROUNDS; i++) {
		ns[0][i] = one_round(&b[0], good);
		ns[1][i] = one_round(&b[1], good);
		ns[2][i] = one_round(&b[1], steerme);
		S.o.naive = true;
		ns[3][i] = one_round(&b[1], good);
		S.o.naive = false;
	}
	atomic_store(&b[0].turn, 2);
	atomic_store(&b[1].turn, 2);
	finish(worker);
	for (int k = 0; k < 4; k++) {
		qsort(ns[k], ROUNDS, sizeof(long), by_size);
		printf("vfork+exec+wait %-9s median %.0f us, p99 %.0f us\n", names[k],
		       (double)ns[k][ROUNDS / 2] / 1e3, (double)ns[k][ROUNDS * 99 / 100] / 1e3);
	}
	(void)pid;
}

static int args_main(int argc, char **argv)
{
	size_t n = 0;

	for (int i = 2; i < argc; i++)
		n += strlen(argv[i]) + 1;
	return argc > 1 && n == strtoul(argv[1], NULL, 10) ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *self = strrchr((const char *)getauxval(AT_EXECFN), '/');
	sigset_t chld;

	if (self && strcmp(self, "/args") == 0)
		return args_main(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &chld, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	make_files();
	if (argc > 1 && strcmp(argv[1], "bench") == 0) {
		bench();
	} else if (argc > 1 && strcmp(argv[1], "stop") == 0) {
		test_stop(0);
		test_stop(1);
	} else if (argc > 1 && strcmp(argv[1], "signals") == 0) {
		test_signals(false, 0);
		test_signals(true, 0);
	} else {
		test_plain();
		test_fail();
		test_script();
		test_loader();
		test_steer();
		test_refused();
		test_rewrite();
		test_signals(false, 0);
		test_signals(true, 0);
		test_pin();
		test_signals(false, 1);
		test_stop(0);
		test_stop(1);
		if (!TSAN)
			races();
	}
	remove_files();
	printf("%s\n", failures ? "FAILED" : "ok");
	return failures ? 1 : 0;
}
