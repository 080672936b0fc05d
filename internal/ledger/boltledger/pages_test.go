package boltledger_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// branch is the root page of a bucket that is a tree, as bbolt lays it out.
type branch struct {
	id, pageSize, pages uint64 // pages is how many the file has
	children            []uint64
	free, other         uint64 // a free page, and the root of another bucket
}

const branchElement = 16 // position and size of a key, and then the child

func rootOf(t *testing.T, dir string, bucket []byte) (root branch) {
	t.Helper()
	edit(t, dir, func(tx *bbolt.Tx) error {
		root.id, root.other = uint64(tx.Bucket(bucket).Root()), uint64(tx.Bucket(docBucket).Root())
		root.pageSize = uint64(tx.DB().Info().PageSize)
		root.pages = uint64(tx.Size()) / root.pageSize
		for id := 2; uint64(id) < root.pages && root.free == 0; id++ {
			if page, err := tx.Page(id); err != nil || page == nil {
				break
			} else if page.Type == "free" {
				root.free = uint64(id)
			}
		}
		return errUnchanged
	})
	root.pages = newest(t, dir).count
	b := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
	page := b[root.id*root.pageSize:]
	for i := range int(binary.NativeEndian.Uint16(page[10:])) {
		root.children = append(root.children, binary.NativeEndian.Uint64(page[pageHeader+i*branchElement+8:]))
	}
	if isBranch := page[8]&1 != 0; !isBranch || len(root.children) < 3 || root.free == 0 {
		t.Fatalf("the root of %s is %+v, want a branch of three children and a free page", bucket, root)
	}
	return root
}

// astray is a page that leads to a wrong one.
type astray struct {
	bucket []byte
	child  func(branch) int
	to     func(branch) uint64
}

func beginning(branch) int   { return 0 }
func middle(b branch) int    { return len(b.children) / 2 }
func end(b branch) int       { return len(b.children) - 1 }
func itself(b branch) uint64 { return b.id }
func (a astray) lead(t *testing.T, dir string) {
	root := rootOf(t, dir, a.bucket)
	kit.Must(t, overwrite(dir, int64(root.id*root.pageSize)+pageHeader+int64(a.child(root))*branchElement+8, a.to(root)))
}

// freeUsed lists the root of a bucket among the free pages, in the place of the first one.
func freeUsed(t *testing.T, dir string) {
	p, root := newest(t, dir), rootOf(t, dir, docBucket)
	kit.Must(t, overwrite(dir, int64(p.freelist*p.size)+pageHeader, root.id))
}

// I15: a probe finds every page that leads astray, and the file stays as it is.
func TestProbe_I15_PagesThatLeadAstray(t *testing.T) {
	source := grown(t)
	rows := map[string]func(t *testing.T, dir string){
		"JournalEndsInACircle": astray{journalBucket, end, itself}.lead,
		"OpenBeginsInACircle":  astray{openBucket, beginning, itself}.lead,
		"DueInACircle":         astray{dueBucket, middle, itself}.lead,
		"ChildTwice":           astray{docBucket, middle, func(b branch) uint64 { return b.children[0] }}.lead,
		"Beyond":               astray{docBucket, middle, func(b branch) uint64 { return b.pages }}.lead,
		"FarBeyond":            astray{docBucket, middle, func(b branch) uint64 { return 1 << 40 }}.lead,
		"MetaPage":             astray{docBucket, middle, func(branch) uint64 { return 1 }}.lead,
		"FreePage":             astray{docBucket, middle, func(b branch) uint64 { return b.free }}.lead,
		"AnotherTree":          astray{dueBucket, middle, func(b branch) uint64 { return b.other }}.lead,
		"UsedPageIsFree":       freeUsed,
		"FreelistLeadsBeyond": func(t *testing.T, dir string) {
			p := newest(t, dir)
			kit.Must(t, overwrite(dir, int64(p.freelist*p.size)+pageHeader, 0xffff_ffff))
		},
		"FreelistGoesOn": func(t *testing.T, dir string) { // over more pages than the memory could list
			p := newest(t, dir)
			at := p.freelist*p.size + 8
			b := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
			kit.Must(t, overwrite(dir, int64(at), uint64(binary.LittleEndian.Uint32(b[at:]))|0x7fff_ffff<<32))
		},
		"FreelistIsNone": func(t *testing.T, dir string) {
			p := newest(t, dir)
			kit.Must(t, overwrite(dir, int64(p.freelist*p.size), p.freelist+1))
		},
		"FreelistOfNoKind": func(t *testing.T, dir string) {
			p := newest(t, dir)
			kit.Must(t, overwrite(dir, int64(p.freelist*p.size)+8, 0))
		},
	}
	out, err := inAProcess(t, copyLedger(t, source, fileName), "probe")
	kit.Check(t, err == nil && out == "sound", "a sound ledger: %q (%v), want it found sound", out, err)
	for name, spoil := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName)
			spoil(t, dir)
			if strings.HasPrefix(name, "Freelist") { // commits alone use it
				kit.Must(t, boltledger.ReadWhileStopped(dir, func(*boltledger.Ledger) error { return nil }))
			}
			before := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
			out, err := inAProcess(t, dir, "probe")
			kit.Check(t, err != nil || strings.HasPrefix(out, "damage: "), "the probe says %q, want damage, or to die of it", out)
			kit.Check(t, bytes.Equal(before, kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)), "the file was changed, want it as it was")
		})
	}
}

// I15, I26: a damaged page ends the process that opens the ledger once. The next
// one finds the marker, has the file probed, and refuses it as damaged: again
// and again, and the file stays as it is.
func TestOpen_I15_I26_EndsOneProcessAtMost(t *testing.T) {
	source := grown(t)
	for name, row := range map[string]struct {
		spoil func(t *testing.T, dir string)
		dies  bool
	}{
		"CircleInDue":     {astray{dueBucket, beginning, itself}.lead, true},
		"CircleInOpen":    {astray{openBucket, beginning, itself}.lead, true},
		"CircleInJournal": {astray{journalBucket, end, itself}.lead, true},
		"Freelist":        {freeUsed, false}, // a commit writes over a page that is in use
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			row.spoil(t, dir)
			out, err := inAProcess(t, dir, "open")
			kit.Need(t, !row.dies || err != nil, "opened, read, and said %q, want the process ended", out)
			kit.Want(t, "the marker", kit.Err(os.Lstat(pathIn(dir, openingName))), nil)
			before := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
			for range 2 {
				_, err := boltledger.Open(boltledger.Config{Dir: dir, Probe: probeInAProcess(t)})
				_, damaged := errors.AsType[*ledger.DamageError](err)
				kit.Check(t, damaged, "the next start: %v, want damage", err)
				kit.Want(t, "the marker after it", kit.Err(os.Lstat(pathIn(dir, openingName))), nil)
			}
			kit.Check(t, bytes.Equal(before, kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)), "the file was changed, want it as it was")
		})
	}
}

const openingName = "ledger.opening"

// I26: the marker is there from before the ledger is opened until it is closed
// or found sound. A file is probed where the marker was found, and only there.
func TestOpen_I26_WhereAMarkerIsFound(t *testing.T) {
	dir := newLedger(t)
	marked := func() bool { return kit.Err(os.Lstat(pathIn(dir, openingName))) == nil }
	probes, damaged := 0, &ledger.DamageError{What: "page 7"}
	var finds error
	probe := func(f *os.File) error {
		probes++
		return finds
	}
	openIt := func() (*boltledger.Ledger, error) {
		return boltledger.Open(boltledger.Config{Dir: dir, Probe: probe})
	}
	l := kit.Value(openIt())(t)
	kit.Check(t, marked() && probes == 0, "marker: %t, %d probes, want a marker and none", marked(), probes)
	_, err := openIt()
	kit.Check(t, errors.Is(err, ledger.ErrLocked) && marked() && probes == 0, "open: %v, marker: %t, %d probes, want it locked and marked", err, marked(), probes)
	kit.Must(t, l.Close())
	kit.Want(t, "a marker of a closed ledger", marked(), false)

	for _, do := range []string{"open", "sound"} { // the process ends without closing it
		out, err := inAProcess(t, dir, do)
		kit.Need(t, err == nil && out == "opened", "%s: %q (%v), want it opened", do, out, err)
		kit.Want(t, "a marker after "+do, marked(), do == "open")
		l := kit.Value(openIt())(t)
		kit.Want(t, "probes", probes, 1)
		kit.Must(t, l.Close())
	}

	kit.Must(t, os.WriteFile(pathIn(dir, openingName), nil, 0o600))
	finds = damaged
	_, err = openIt()
	kit.Check(t, errors.Is(err, damaged) && marked(), "open: %v, marker: %t, want what the probe found and the marker kept", err, marked())
	finds = nil
	kit.Must(t, kit.Value(openIt())(t).Close())
	kit.Want(t, "a marker after a good start", marked(), false)

	kit.Must(t, os.Remove(pathIn(dir, fileName)))
	_, err = openIt()
	kit.Check(t, errors.Is(err, ledger.ErrMissing) && !marked(), "open: %v, marker: %t, want it missing without a marker", err, marked())
}

const inProcessDo = "VAULTD_LEDGER_DO"

// inAProcess has a child process work on the ledger in dir, and returns what it says.
func inAProcess(t *testing.T, dir, do string) (string, error) {
	t.Helper()
	f := kit.Value(os.Open(pathIn(dir, fileName)))(t)
	defer f.Close()
	return withFileInAProcess(t, f, dir, do)
}

func withFileInAProcess(t *testing.T, f *os.File, dir, do string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestLedgerInAProcess$")
	cmd.Env = append(os.Environ(), inProcessDo+"="+do, "VAULTD_LEDGER_DIR="+dir, "GOTRACEBACK=none")
	cmd.ExtraFiles = []*os.File{f}
	out, err := cmd.Output()
	return string(out), err
}

func probeInAProcess(t *testing.T) func(*os.File) error {
	return func(f *os.File) error {
		out, err := withFileInAProcess(t, f, "", "probe")
		if err != nil || out != "sound" {
			return &ledger.DamageError{What: fmt.Sprint(out, err)}
		}
		return nil
	}
}

// TestLedgerInAProcess is the child of the tests above, which alone start it.
func TestLedgerInAProcess(t *testing.T) {
	do, dir := os.Getenv(inProcessDo), os.Getenv("VAULTD_LEDGER_DIR")
	if do == "" {
		t.Skip("a helper of other tests")
	}
	debug.SetMaxStack(64 << 20)
	const most = 66 << 30 // of address space: the file has 64 GiB of it
	kit.Must(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}))
	say := func(err error, good string) {
		if err != nil {
			good = "damage: " + err.Error()
		}
		fmt.Print(good)
		os.Exit(0)
	}
	if do == "probe" {
		say(boltledger.ProbeFile(t.Context(), os.NewFile(3, fileName)), "sound")
	}
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	if err == nil && do == "sound" {
		l.NoteSound()
	}
	if err == nil {
		err = l.OpenEntries(func(ledger.Entry) error { return nil })
	}
	if err == nil {
		_, _, err = l.DueInQueue(ledger.Register, ledger.ServiceQueue(ledger.Vault, "V1"), time.Now(), math.MaxInt32, nil, nil)
	}
	if err == nil {
		d := newDoc(t, l, 9000+len(do))
		d.do(d.claim())
	}
	say(err, "opened")
}
