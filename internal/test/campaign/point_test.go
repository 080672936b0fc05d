package campaign

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"vaultd/internal/catalog"
)

// point is a trapped call in words.
type point struct {
	notice
	call string // as trapped names it
	path string // what it is done to, absolute, or as the kernel names what is no file
	to   string // of a rename
	name string // of the kind of point: "rename claimed > archived"; empty: of no interest
}

// watcher lets the calls of one process pass, counts them, and kills before the one that it was told to.
type watcher struct {
	*listener
	pid   int
	dir   string // of the campaign
	fatal func(p point, all int) bool
	power *power // nil: the power stays on
	over  chan struct{}

	mu     sync.Mutex
	seen   map[string]int // guarded by mu
	all    int            // points but those of the catalog; guarded by mu
	killed string         // the point before which it died; guarded by mu
}

func (w *watcher) run() {
	defer close(w.over)
	defer w.close()
	for {
		n, ok := w.receive()
		if !ok {
			return
		}
		if p := w.point(n); !w.strikes(p) {
			w.pass(n, w.power.before(p))
		}
	}
}

// strikes counts the point and kills where it is fatal; a call that is not answered never happens.
func (w *watcher) strikes(p point) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed != "" {
		return true
	}
	if p.name == "" {
		return false
	}
	w.seen[p.name]++
	if w.place(p.path) != catalogPlace { // its many small writes would leave few deaths for what documents need
		w.all++
	}
	if w.fatal == nil || !w.fatal(p, w.all) {
		return false
	}
	w.killed = fmt.Sprintf("%s #%d", p.name, w.seen[p.name])
	_ = unix.Kill(w.pid, unix.SIGKILL) // it cannot be gone: one of its threads waits for an answer
	return true
}

// result returns what was seen, once nobody is left.
func (w *watcher) result() (seen map[string]int, killed string) {
	<-w.over
	return w.seen, w.killed
}

func (w *watcher) point(n notice) point {
	p := point{notice: n, call: trapped[int(n.nr)]}
	switch n.nr {
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		p.path, p.to = w.at(n, 0), w.at(n, 2)
	case unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_OPENAT:
		p.path = w.at(n, 0)
	case unix.SYS_COPY_FILE_RANGE:
		p.path = w.fd(n, n.args[2])
	default: // sendfile too: what it is written to comes first
		p.path = w.fd(n, n.args[0])
	}
	p.name = w.name(p)
	return p
}

func (w *watcher) fd(n notice, arg uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.tid, int32(arg)))
	return path
}

// at resolves a directory's descriptor and a name, the i-th argument and the next.
func (w *watcher) at(n notice, i int) string {
	name := w.text(n, n.args[i+1])
	if filepath.IsAbs(name) {
		return name
	}
	if int32(n.args[i]) == unix.AT_FDCWD {
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.tid))
		return filepath.Join(dir, name)
	}
	return filepath.Join(w.fd(n, n.args[i]), name)
}

func (w *watcher) text(n notice, address uint64) string {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.tid))
	if err != nil {
		return ""
	}
	defer mem.Close()
	b := make([]byte, 4096)
	got, _ := mem.ReadAt(b, int64(address)) // the page after it need not be there
	text, _, _ := bytes.Cut(b[:got], []byte{0})
	return string(text)
}

func (w *watcher) name(p point) string {
	place, to := w.place(p.path), w.place(p.to)
	switch {
	case place == "":
		return ""
	case p.call == "rename":
		return fmt.Sprintf("rename %s > %s", place, to)
	}
	return p.call + " " + place
}

// catalogPlace is the place of the catalog and what SQLite keeps beside it.
const catalogPlace = "catalog"

// place says in a word where a path lies; empty: where nobody cares.
func (w *watcher) place(path string) string {
	if strings.HasPrefix(path, "socket:") {
		return "connection"
	}
	rel, err := filepath.Rel(w.dir, strings.TrimSuffix(path, " (deleted)"))
	if path == "" || err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	part := strings.Split(rel, "/")
	switch {
	case part[0] == "state" && len(part) > 1 && part[1] == "spool":
		return "spool"
	case part[0] == "state" && len(part) > 1 && (part[1] == "ledger.db" || part[1] == "ledger.head"):
		return part[1]
	case part[0] == "state" && len(part) > 1 && strings.HasPrefix(part[1], catalog.FileName):
		return catalogPlace
	case part[0] == "state" || part[0] == "moved":
		return part[0]
	case part[0] != "drops" || len(part) < 3:
		return map[bool]string{true: "drop"}[part[0] == "drops"]
	case part[2] == ".vaultd" && len(part) > 3 && part[3] == "claimed":
		return "claimed"
	case strings.HasPrefix(part[2], "_") || strings.HasPrefix(part[2], "."):
		return strings.TrimSuffix(strings.Trim(part[2], "._"), ".txt.tmp")
	}
	return "drop"
}
