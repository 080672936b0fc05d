package canary

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// birds are the secrets of the suite's fixtures, and what a real one looks like. A new fixture begins its secrets with
// CANARY- and is found by that.
var birds = []struct {
	what string
	form *regexp.Regexp
}{
	{"secret", regexp.MustCompile(`CANARY-(password|clientsecret|port|first-secret|second-secret|web)[A-Za-z0-9+/=!-]*|hunter2|campaign-secret|s3=cret/\+|cl%secret|S3cr3t[+of -]|tok-canary-|51gnature0canary`)},
	{"secret in a Basic header", regexp.MustCompile(`Basic [A-Za-z0-9+/]{12,}={0,2}`)},
	{"bearer token", regexp.MustCompile(`Bearer [A-Za-z0-9._~+/-]{24,}|"access_token" ?: ?"[A-Za-z0-9._~+/-]{24,}"`)},
	{"signature", regexp.MustCompile(`X-Amz-Signature=[0-9a-f]{32,}`)},
	{"session token", regexp.MustCompile(`X-Amz-Security-Token=[A-Za-z0-9%]{20,}`)},
	{"document bytes", regexp.MustCompile(`CANARY-document-bytes-[0-9]+`)},
	{"sidecar value", regexp.MustCompile(`CANARY-(sender|recipient|reference|project)-[0-9]+`)},
}

// allowed are the only places where a bird may be, below the folder for temporary files.
var allowed = []struct {
	path *regexp.Regexp
	what string // a kind of bird, or empty for all
	why  string
}{
	{regexp.MustCompile(`/(secret|port-users|client-secret|credential|link|s)[^/]*$`), "secret", "the secret's file itself, as the administrator wrote it"},
	{regexp.MustCompile(`\.ya?ml$`), "secret", "a configuration with a secret where none belongs is a test's input"},
	{regexp.MustCompile(`/vaultd$`), "secret in a Basic header", "words of the program itself"},
	{regexp.MustCompile(`/keys[^/]*$`), "", "the keys of the stand-in for the service: the other side's own"},
	{regexp.MustCompile(`/(a\.pdf|metadata\.json|scan\.bin)$`), "", "what people dropped, wherever it was moved"},
	{regexp.MustCompile(`/spool/[^/]*$|/objects/`), "document bytes", "the spool holds ZIPs, and so does the service's stand-in"},
	{regexp.MustCompile(`/\.?(ledger|copy)[^/]*\.db[^/]*$`), "sidecar value", "the metadata that is sent stands in the ledger's erasable part"},
	{regexp.MustCompile(`/catalog\.db[^/]*$`), "sidecar value", "the catalog is made from that part"},
	{regexp.MustCompile(`/\.?(ledger|copy)[^/]*\.db[^/]*$`), "signature", "an upload address stands in its entry while it is unspent; TestCanary_I7 looks at the ledger after it is"},
	{regexp.MustCompile(`/\.?(ledger|copy)[^/]*\.db[^/]*$`), "session token", "as above"},
	{regexp.MustCompile(`/_REASON\.txt$|/_[A-Z]+\.(json|txt)$`), "sidecar value", "words for the person who dropped the folder, and receipts"},
	{regexp.MustCompile(`/(journal|state|store)[^/]*\.?(jsonl|log|json)?$`), "sidecar value", "what the service's stand-in received"},
}

// TestSuite_I7_LeavesNoSecretAnywhere runs every test of the repository.
func TestSuite_I7_LeavesNoSecretAnywhere(t *testing.T) {
	if os.Getenv("VAULTD_CANARY") == "" {
		t.Skip("takes as long as all tests together: make canary")
	}
	tmp := folder(t)
	l := &look{t: t, root: tmp}
	stop := l.follow()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kept := kit.Value(os.Create(filepath.Join(tmp, "suite.out")))(t)
	defer kept.Close()
	lines := 0
	for _, module := range modules {
		lines += l.runTests(ctx, module, tmp, kept)
	}
	stop()
	l.rest()
	t.Logf("%d lines of output and %d files were looked at; %d birds sat where they may", lines, l.files, l.resting)
	kit.Check(t, (os.Getenv("VAULTD_CANARY") != "1" || lines >= 500) && l.files >= 50 && l.resting != 0, "vacuous")
}

// folder is where the suite writes. It is kept, so that what was found can be looked at.
func folder(t *testing.T) string {
	t.Helper()
	for i := range 100 {
		dir := filepath.Join(os.TempDir(), strconv.Itoa(i)) // short: sockets lie below it, and their paths have a limit
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			t.Log("kept:", dir)
			return dir
		}
		kit.Need(t, errors.Is(err, fs.ErrExist), "err = %v, want error fs.ErrExist", err)
	}
	t.Fatal("a hundred earlier runs are kept in " + os.TempDir())
	return ""
}

// modules are the roots of the modules whose tests run, from the folder of this test.
var modules = []string{"../../..", "../../../bench"}

// runTests runs the tests of one module, looks through their output and keeps it, and returns how many lines it had.
func (l *look) runTests(ctx context.Context, module, tmp string, kept io.Writer) (lines int) {
	l.t.Helper()
	tests := packages(l.t, module)
	if len(tests) == 0 {
		return 0
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-v", "-count=1", "-timeout=30m"}, tests...)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "VAULTD_CANARY=", "TMPDIR="+tmp, "GOTMPDIR=")
	out, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err == nil {
		err = cmd.Start()
	}
	kit.Must(l.t, err)
	lines = l.output(io.TeeReader(out, kept))
	kit.Want(l.t, "the suite itself", cmd.Wait(), nil)
	return lines
}

// packages are all of the module but this one. Where VAULTD_CANARY is not 1, it names packages and flags of go test, for
// the first module alone.
func packages(t *testing.T, module string) []string {
	t.Helper()
	if named := os.Getenv("VAULTD_CANARY"); named != "1" {
		if module != modules[0] {
			return nil
		}
		return strings.Fields(named)
	}
	list := exec.Command("go", "list", "./...")
	list.Dir = module
	out := kit.Value(list.Output())(t)
	var all []string
	for _, p := range strings.Fields(string(out)) {
		if !strings.HasSuffix(p, "/internal/test/canary") {
			all = append(all, p)
		}
	}
	return all
}

// look searches what was written.
type look struct {
	t    *testing.T
	root string

	mu             sync.Mutex
	files, resting int             // guarded by mu
	told           map[string]bool // guarded by mu
}

// output looks at what the suite prints, line by line.
func (l *look) output(r io.Reader) (lines int) {
	in := bufio.NewReaderSize(r, 1<<20)
	test := ""
	for {
		line, err := in.ReadString('\n')
		if f := strings.Fields(line); len(f) > 2 && f[0] == "===" {
			test = f[2]
		}
		lines++
		for _, b := range birds {
			if m := b.form.FindString(line); m != "" {
				l.tell(b.what+test, "output of %s: %s: %.200q", test, b.what, line)
			}
		}
		if err != nil {
			return lines
		}
	}
}

func (l *look) tell(key, format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[string]bool{}
	}
	if !l.told[key] {
		l.told[key] = true
		l.t.Errorf(format, a...)
	}
}

const atMost = 64 << 20 // of one file

// file looks at one file, by what is open.
func (l *look) file(path string, f io.ReaderAt) {
	rel := strings.TrimSuffix(strings.TrimPrefix(path, l.root), " (deleted)")
	content, err := io.ReadAll(io.NewSectionReader(f, 0, atMost))
	if err != nil || strings.HasPrefix(rel, "/go-build") { // the compiler's: what the tests themselves say
		return
	}
	l.mu.Lock()
	l.files++
	l.mu.Unlock()
	l.content(rel, content)
	// What is deflated hides what it holds. Nothing of the lines is allowed that is allowed in the rest of the file.
	if lines := journalOf(content); lines != nil {
		l.content(rel+"/lines", lines)
	}
}

// content looks at what a file holds.
func (l *look) content(rel string, content []byte) {
	for _, b := range birds {
		at := b.form.FindIndex(content)
		if at == nil {
			continue
		}
		if may(rel, b.what) {
			l.mu.Lock()
			l.resting++
			l.mu.Unlock()
			continue
		}
		place := regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`).ReplaceAllString(rel, "N")
		l.tell(b.what+place, "%s: %s: …%q…", rel, b.what, content[max(0, at[0]-40):min(len(content), at[1]+20)])
	}
}

func may(rel, what string) bool {
	for _, a := range allowed {
		if (a.what == "" || a.what == what) && a.path.MatchString(rel) {
			return true
		}
	}
	return false
}

// rest looks at what is left at the end.
func (l *look) rest() {
	err := filepath.WalkDir(l.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		kit.Check(l.t, !strings.HasPrefix(d.Name(), "core"), "a core file: %s", path)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		l.file(path, f)
		return nil
	})
	kit.Want(l.t, "the error", err, nil)
}

// follow looks at each file when it is closed after writing, even if it is removed at once, until stop.
func (l *look) follow() (stop func()) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_UNLIMITED_QUEUE|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_LARGEFILE)
	if err == nil {
		err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_CLOSE_WRITE, unix.AT_FDCWD, l.root)
	}
	if err != nil {
		l.t.Log("ONLY WHAT IS LEFT AT THE END IS LOOKED AT; run it as root for the rest:", err)
		return func() {}
	}
	events := os.NewFile(uintptr(fd), "fanotify")
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, err := events.Read(b)
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					l.tell("follow", "follow: %v", err)
				}
				return
			}
			l.events(b[:n])
		}
	}()
	return func() { events.Close(); <-done }
}

func (l *look) events(b []byte) {
	const size = int(unsafe.Sizeof(unix.FanotifyEventMetadata{}))
	for len(b) >= size {
		var e unix.FanotifyEventMetadata
		if _, err := binary.Decode(b, binary.NativeEndian, &e); err != nil || e.Event_len < uint32(size) {
			return
		}
		b = b[e.Event_len:]
		if e.Fd < 0 {
			l.tell("overflow", "events were lost")
			continue
		}
		f := os.NewFile(uintptr(e.Fd), "written")
		if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", e.Fd)); err == nil && strings.HasPrefix(path, l.root) {
			l.file(path, f)
		}
		f.Close()
	}
}
