# Tries from inside a cage what a decoder that was taken over would try; one line for each: a name, a colon, and what came of it.
# Arguments: file that may be read, file that may be written, secret file, folder, TCP port, process id outside, and 1 for the calls of the
# kernel too: without a cage root would really change its machine by them.
my ($readable, $writable, $secret, $folder, $port, $outside, $makesCalls) = @ARGV;
$| = 1;
sub told { my ($name, $done) = @_; print "$name: ", ($done ? "done" : "refused"), "\n"; }
sub reads { my $file; open($file, "<", $_[0]) && defined(<$file>) }
sub writes { my $file; my $done = open($file, $_[1], $_[0]) && syswrite($file, "x"); unlink $_[0] if $done && $_[1] eq ">"; $done }
sub lists { my $folder; opendir($folder, $_[0]) ? grep { !/^\.\.?$/ } readdir $folder : () }
sub opens { my $socket; socket($socket, $_[0], $_[1], $_[2]) && $socket }
sub loopback { pack("S n C4 x8", 2, $_[0], 127, 0, 0, 1) }
# Not `syscall(@_)`, whose number would be how many there are. What was opened is closed again.
sub calls { my ($number, @arguments) = @_; my $result = syscall($number, @arguments); syscall(3, $result) if $result > 2; $result != -1 }

told("read its input", reads($readable));
told("write its output", $writable eq "" || writes($writable, ">>"));
told("start a process of its own", do { my $pid = fork; if (defined $pid && $pid == 0) { exec("/bin/true"); kill 9, $$; } waitpid($pid, 0) if $pid; defined $pid });
told("read /etc/passwd", reads("/etc/passwd"));
told("list /root", scalar(lists("/root")));
told("list /home", scalar(lists("/home")));
told("read a secret beside its input", reads($secret));
told("list the folder of its input", scalar(grep { $_ eq "secret.txt" } lists($folder)));
told("write its input", writes($readable, ">>"));
told("make a file beside its input", writes("$folder/made", ">"));
told("make a file in /tmp", writes("/tmp/cage-made", ">"));
told("make a file in /", writes("/cage-made", ">"));
told("run a shell", do { -x "/bin/sh" });
told("see processes", scalar(grep { /^\d+$/ } lists("/proc")));
told("signal a process outside", kill(0, $outside));
told("connect to the machine", do { my $s = opens(2, 1, 0); $s && connect($s, loopback($port)) });
told("open a UDP socket", opens(2, 2, 0));
told("open an IPv6 socket", opens(10, 1, 0));
told("open a netlink socket", opens(16, 3, 0));
told("open a packet socket", opens(17, 3, 0));
told("open a vsock socket", opens(40, 1, 0));
told("open a kernel crypto socket", opens(38, 5, 0));
told("open an SCTP socket", opens(2, 1, 132));
told("listen", do { my $s = opens(2, 1, 0); $s && bind($s, loopback(0)) && listen($s, 1) });

my %numbers = (
  "ptrace itself" => [101, 0, 0, 0, 0],
  "attach to process 1" => [101, 16, 1, 0, 0],
  "make a user namespace" => [272, 0x10000000],
  "make a network namespace" => [272, 0x40000000],
  "mount" => [165, "none", "/etc", "tmpfs", 0, 0],
  "chroot" => [161, "/etc"],
  "enter a namespace" => [308, 0, 0],
  "add a key" => [248, "user", "cage", "x", 1, -3],
  "ask for keys" => [250, 0, -3, 1],
  "load a BPF program" => [321, 0, 0, 0],
  "watch performance events" => [298, 0, 0, -1, -1, 0],
  "handle page faults" => [323, 1],
  "make a ring for requests" => [425, 1, "\0" x 128],
  "open by handle" => [304, 0, "\0" x 16, 0],
  "read other memory" => [310, $outside, 0, 0, 0, 0, 0],
  "change its personality" => [135, 0x0040000],
  "load a module" => [175, "x", 1, ""],
  "restart into another kernel" => [246, 0, 0, 0, 0],
  "make a file of memory" => [319, "x", 0],
  "set the clock" => [227, 0, "\0" x 16],
  "set the host name" => [170, "x", 1],
  "ask for limits of a process outside" => [302, $outside, 4, 0, "\0" x 16],
);
for my $name ($makesCalls ? sort keys %numbers : ()) { my @call = @{ $numbers{$name} }; told($name, calls(@call)); }

print "environment: ", join(" ", sort keys %ENV), "\n";
print "user: $<\n";
print "ready\n";
<STDIN>;
