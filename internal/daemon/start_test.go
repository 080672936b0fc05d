package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// backlog gives the ledger so many folders that wait to be packed.
func backlog(t *testing.T, l *boltledger.Ledger, n int) {
	t.Helper()
	for done := 0; done < n; {
		var cs []ledger.Change
		for ; done < n && len(cs) < 500; done++ {
			now := time.Now()
			cs = append(cs, ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: "Huber 88", NotBefore: now.Add(time.Hour)}}})
		}
		rs, err := l.Apply(t.Context(), cs...)
		if err != nil || rs[0].Err != nil {
			t.Fatal(err, rs[0].Err)
		}
	}
}

// What a start does before it is ready does not grow with what waits: whoever reads an
// entry, or looks at a package, must allocate for it.
func TestOpen_I21_DoesNotReadTheBacklog(t *testing.T) {
	d, cfg := idle(t)
	again := func() {
		err := d.Close()
		if err == nil {
			d, err = Open(cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	few := testing.AllocsPerRun(2, again)
	const n = 5000
	backlog(t, d.Ledger(), n)
	for range n / 2 {
		if err := os.WriteFile(filepath.Join(cfg.StateDir, "spool", archive.NewKey(time.Now()).String()+".zip"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if many := testing.AllocsPerRun(2, again); many > few+n {
		t.Errorf("a start makes %.0f allocations with nothing and %.0f with %d folders that wait", few, many, n)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// What lies in the spool is counted beside the work, once: a package that leaves meanwhile
// counts neither twice nor for ever, and nothing is packed before all are counted.
func TestSpool_I21_CountedBesideTheWork(t *testing.T) {
	s := spoolAt(t, t.TempDir())
	var keys []archive.Key
	for i := range 4 {
		k := archive.NewKey(time.UnixMilli(int64(i + 1)))
		keys = append(keys, k)
		if err := os.WriteFile(s.path(k), make([]byte, 100+i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, durable.TemporaryName(packageName(keys[0]))), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.room("V"); err == nil {
		t.Error("there is room before anything was counted")
	}
	err := s.sweep(context.Background(), func(k archive.Key) (archive.VaultID, bool, error) {
		if k == keys[1] {
			for _, gone := range []archive.Key{keys[0], keys[2]} { // one that is counted, and one that is not
				if err := s.drop(gone, "V"); err != nil {
					t.Fatal(err)
				}
			}
		}
		return "V", k != keys[3], nil
	})
	left, readErr := os.ReadDir(s.dir)
	if err != nil || readErr != nil || s.of("V") != 101 || len(left) != 1 || s.room("V") != nil {
		t.Errorf("%d bytes, %v left, %v %v %v", s.of("V"), left, s.room("V"), err, readErr)
	}
	s.making(keys[1])
	lies(t, s, keys[1], 150)
	if s.made(keys[1], "V"); s.all() != 150 {
		t.Errorf("packed anew: %d bytes", s.all())
	}
}

// spoolAt is the spool in a folder.
func spoolAt(t *testing.T, dir string) *spool {
	t.Helper()
	s := newSpool(dir, 1e9, 0, 1)
	var err error
	if s.names, err = durable.Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.names.Close() })
	return s
}

// lies puts a package of so many bytes into the spool.
func lies(t *testing.T, s *spool, k archive.Key, bytes int) {
	t.Helper()
	if err := os.WriteFile(s.path(k), make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is packed while the spool is being counted is booked once, whichever comes first: the count, its begin or its end;
// and the file that is being written for it stays. So it is where the count must begin anew.
func TestSpool_I21_PackedWhileItIsCounted(t *testing.T) {
	s := spoolAt(t, t.TempDir())
	var keys []archive.Key
	for i := range 6 {
		keys = append(keys, archive.NewKey(time.UnixMilli(int64(i+1))))
	}
	half := func(k archive.Key) string { return filepath.Join(s.dir, "."+k.String()+".zip.tmp") }
	for _, k := range []archive.Key{keys[0], keys[2], keys[3], keys[4]} {
		lies(t, s, k, 100)
	}
	for _, name := range []string{half(keys[5]), half(keys[4])} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(k archive.Key, bytes int) {
		s.making(k)
		lies(t, s, k, bytes)
		s.made(k, "V")
	}
	s.making(keys[4]) // before it begins
	errAnew := errors.New("anew")
	for round, end := range []error{errAnew, nil} {
		err := s.sweep(context.Background(), func(k archive.Key) (archive.VaultID, bool, error) {
			switch k {
			case keys[2]:
				if round == 0 {
					s.making(keys[0]) // counted, and not made before the count begins anew
				}
				pack(keys[1], 10)  // new, and behind the count
				pack(keys[3], 200) // ahead of it
				pack(keys[5], 20)  // new, and ahead of it
				pack(keys[5], 30)
				s.making(keys[2]) // at this moment
			case keys[3]:
				lies(t, s, keys[2], 300)
				s.made(keys[2], "V")
			case keys[4]:
				if round == 0 {
					return "", false, errAnew
				}
			}
			return "V", true, nil
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	for k, bytes := range map[archive.Key]int{keys[0]: 150, keys[4]: 400} {
		lies(t, s, k, bytes)
		s.made(k, "V")
	}
	if want := int64(150 + 10 + 300 + 200 + 400 + 30); s.all() != want || len(s.begun)+len(s.ahead) != 0 {
		t.Errorf("%d bytes are booked of %d; %d and %d are remembered", s.all(), want, len(s.begun), len(s.ahead))
	}
	if _, err := os.Stat(half(keys[4])); err != nil {
		t.Error("a file that was being written is gone")
	}
	if _, err := os.Stat(half(keys[5])); err == nil {
		t.Error("what was left half made is still there")
	}
	for _, k := range keys {
		if err := s.drop(k, "V"); err != nil {
			t.Fatal(err)
		}
	}
	if s.all() != 0 {
		t.Errorf("%d bytes are booked of nothing", s.all())
	}
}

// What ends while the day is still being counted is counted once, whichever is first.
func TestToday_CountedOnceBesideTheWork(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	ended := func(n byte, s ledger.Source) ledger.Entry {
		return ledger.Entry{Key: archive.Key{n}, State: ledger.Archived, Source: s, ArchivedAt: now}
	}
	d := today{recalling: true}
	d.count(ended(1, ledger.Claimed), now) // ended, and placed
	d.count(ended(1, ledger.Kept), now)
	d.recall(ended(1, ledger.Kept), now)
	d.recall(ended(2, ledger.Claimed), now) // ended before, placed after it was recalled
	d.count(ended(2, ledger.Kept), now)
	d.count(ended(3, ledger.Kept), now) // ended before, placed before it was recalled
	d.recall(ended(3, ledger.Kept), now)
	d.count(ended(4, ledger.Claimed), now) // ended, not placed
	d.recall(ended(4, ledger.Claimed), now)
	d.recalled()
	if d.archived != 4 || len(d.ended) != 1 {
		t.Errorf("%d archived, %d of them not placed", d.archived, len(d.ended))
	}
}
