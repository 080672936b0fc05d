package statusfile

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
	"vaultd/internal/test/kit"
)

// statusDrop is the status file of one drop folder without a watcher, in a
// bubble of virtual time.
type statusDrop struct {
	t        *testing.T
	path     string
	files    *Files
	pauses   atomic.Pointer[[]ingest.Pause] // the open circuit breakers
	rendered atomic.Int64                   // renderings of the text
}

func withStatusDrop(t *testing.T, test func(d *statusDrop)) {
	state := t.TempDir()
	d := &statusDrop{path: t.TempDir()}
	d.pauses.Store(&[]ingest.Pause{})
	synctest.Test(t, func(t *testing.T) {
		d.t = t
		began, log := time.Now(), slog.New(slog.DiscardHandler)
		now := func() archive.Instant { return archive.Instant{Wall: time.Now(), Boot: time.Since(began)} }
		d.must(boltledger.Create(state, ledger.Info{ID: "L-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
		l, err := boltledger.Open(boltledger.Config{Dir: state})
		d.must(err)
		defer l.Close()
		shared := &dropwork.Shared{StateDir: state, Environment: "test", Now: now, Log: log, Ledger: l, Returned: dropwork.NewReturned(),
			Takeover: dropwork.NewTakeover(state, l, log, func(err error) { t.Errorf("the process would end: %v", err) })}
		shared.Scans = dropwork.NewScans(shared)
		drop, err := dropwork.New(dropwork.Settings{Name: "acme-in", Path: d.path, Vault: "V", Settle: time.Second, Rescan: time.Minute,
			Rules: packager.Rules{Sidecar: "metadata.json"}}, shared)
		d.must(err)
		d.must(drop.OpenForStart())
		defer drop.Close()
		disk := spool.NewDisk(state, 0, l, func() time.Time { return now().Wall }, log)
		d.files = New(Config{Ledger: l, Disk: disk, Environment: "test", Now: now, Log: log, LostSince: func() time.Time { return time.Time{} }, Pauses: func() []ingest.Pause {
			d.rendered.Add(1)
			return *d.pauses.Load()
		}})
		d.files.Add(drop)
		d.must(d.files.RecallToday(t.Context()))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.files.Run(ctx); close(ended) }()
		defer func() { stop(); <-ended }()
		d.pass(10 * time.Second)
		test(d)
	})
}

func (d *statusDrop) must(err error) {
	d.t.Helper()
	kit.Must(d.t, err)
}

func (d *statusDrop) pass(t time.Duration) {
	time.Sleep(t)
	synctest.Wait()
}

// read returns the text and the time in its head; both are zero where there is
// no file.
func (d *statusDrop) read() (text string, at time.Time) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.path, "_STATUS.txt"))
	if os.IsNotExist(err) {
		return "", at
	}
	d.must(err)
	head, _, _ := strings.Cut(string(data), "\r\n")
	_, stamp, _ := strings.Cut(head, "acme-in")
	at, err = time.Parse("Mon 2 Jan 2006 15:04 MST", strings.TrimSpace(stamp))
	d.must(err)
	return string(data), at
}

// Without a change the file is written, and its text rendered, every five
// minutes.
func TestWriter_IdleWritesEveryFiveMinutes(t *testing.T) {
	withStatusDrop(t, func(d *statusDrop) {
		d.rendered.Store(0)
		for range 12 * 60 {
			d.pass(5 * time.Second)
			if _, at := d.read(); time.Since(at) > 6*time.Minute { // the head has no seconds
				t.Fatalf("age of the file = %v, want at most 6 minutes", time.Since(at))
			}
		}
		kit.Want(t, "texts rendered in an hour", d.rendered.Load(), 12)
	})
}

// A file that somebody removed or changed is written again within five minutes.
func TestWriter_RemovedOrChangedFileComesBack(t *testing.T) {
	withStatusDrop(t, func(d *statusDrop) {
		d.pass(7 * time.Minute)
		name := filepath.Join(d.path, "_STATUS.txt")
		for what, spoil := range map[string]func() error{
			"removed": func() error { return os.Remove(name) },
			"changed": func() error { return os.WriteFile(name, []byte("x"), 0o600) },
		} {
			d.must(spoil())
			d.pass(5 * time.Minute)
			text, err := os.ReadFile(name)
			kit.Check(t, err == nil && strings.Contains(string(text), "Nothing to put right"), "%s: five minutes later: %q, %v", what, text, err)
		}
	})
}

// DELAYED appears half a minute after a pause began, and goes within half a
// minute of its end, which is not reported.
func TestWriter_I26_PauseBeginsAndEnds(t *testing.T) {
	withStatusDrop(t, func(d *statusDrop) {
		d.pass(time.Minute)
		target := ingest.RegisterTarget("V")
		for _, step := range []struct {
			what   string
			pauses []ingest.Pause
			after  time.Duration
			want   bool
		}{
			{"a young pause", []ingest.Pause{{Target: target, Since: time.Now()}}, usualInterval / writesPerInterval, false},
			{"the same pause", []ingest.Pause{{Target: target, Since: time.Now()}}, delayedAfter, true},
			{"its end", nil, usualInterval, false},
		} {
			d.pauses.Store(&step.pauses)
			if len(step.pauses) > 0 {
				d.files.NotePause(target)
			}
			d.pass(step.after)
			if text, _ := d.read(); strings.Contains(text, "DELAYED") != step.want {
				t.Errorf("%s, %v later: DELAYED = %v, want %v\n%s", step.what, step.after, !step.want, step.want, text)
			}
		}
		d.rendered.Store(0)
		if d.pass(time.Hour); d.rendered.Load() != 12 {
			t.Errorf("texts rendered in the hour after the pause = %d, want 12", d.rendered.Load())
		}
	})
}

// The text is rendered every three seconds at most, however much is reported,
// and the file is written only if it has changed.
func TestWriter_StormOfReports(t *testing.T) {
	withStatusDrop(t, func(d *statusDrop) {
		before, err := os.Stat(filepath.Join(d.path, "_STATUS.txt"))
		d.must(err)
		d.rendered.Store(0)
		for range 600 {
			d.files.NoteChange("acme-in")
			d.pass(100 * time.Millisecond)
		}
		n := d.rendered.Load()
		kit.Check(t, n >= 19 && n <= 21, "texts rendered in a minute of reports = %d, want 20", n)
		after, err := os.Stat(filepath.Join(d.path, "_STATUS.txt"))
		d.must(err)
		kit.Check(t, os.SameFile(before, after), "the file was written again, want it untouched: nothing changed")
	})
}

// While the drop folder is away nothing is written; when it is there again its
// file is written within half a minute.
func TestWriter_FolderIsAway(t *testing.T) {
	withStatusDrop(t, func(d *statusDrop) {
		aside := d.path + ".aside"
		d.must(os.Rename(d.path, aside))
		d.must(os.Mkdir(d.path, 0o770)) // an empty mount point
		d.pass(6 * time.Minute)
		text, _ := d.read()
		kit.Check(t, text == "", "written into another folder:\n%s", text)
		d.must(os.Remove(d.path))
		d.must(os.Rename(aside, d.path))
		d.pass(usualInterval)
		_, at := d.read()
		kit.Check(t, time.Since(at) <= time.Minute, "age of the file = %v, want less than a minute", time.Since(at))
	})
}

// Each text stays within its line of _STATUS.txt.
func FuzzStatusWords(f *testing.F) {
	for _, s := range []string{"Müller 4711", "a\nb", "\x1b[2J", "\u202eexe", "\xff", strings.Repeat("ü", 500), "e\u0301", "😀", "\u2028", "../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{shortenName(s), replaceUnprintable(s)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
				t.Errorf("%q: %q", s, got)
			}
		}
		if utf8.RuneCountInString(shortenName(s)) > longestShown {
			t.Errorf("%q is too long", shortenName(s))
		}
	})
}
