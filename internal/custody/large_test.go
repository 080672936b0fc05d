package custody

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// zeros gives so many of them.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// writeZIP writes a ZIP with one entry of zeros.
func writeZIP(w io.Writer, method uint16, size int64) error {
	z := zip.NewWriter(w)
	entry, err := z.CreateHeader(&zip.FileHeader{Name: "IA_INVOICE.csv", Method: method})
	if err == nil {
		_, err = io.Copy(entry, zeros(size))
	}
	return errors.Join(err, z.Close())
}

func writeGzip(w io.Writer, size int64) error {
	z := gzip.NewWriter(w)
	_, err := io.Copy(z, zeros(size))
	return errors.Join(err, z.Close())
}

// memoryWriter knows the most memory of this process while something was written through it. It looks every 64 MiB.
type memoryWriter struct {
	t    *testing.T
	w    io.Writer
	n    int64
	peak int64 // bytes
}

func (m *memoryWriter) Write(p []byte) (int, error) {
	const every = 64 << 20
	if m.n/every != (m.n+int64(len(p)))/every {
		m.peak = max(m.peak, anonymousMemory(m.t))
	}
	m.n += int64(len(p))
	return m.w.Write(p)
}

// anonymousMemory is what this process has in memory that is no file's.
func anonymousMemory(t *testing.T) int64 {
	t.Helper()
	status := kit.Value(os.ReadFile("/proc/self/status"))(t)
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	kb := kit.Value(strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64))(t)
	return kb << 10
}

// keepStream puts what write writes into custody, and says how long the commit took and how much memory there was at most.
func keepStream(t *testing.T, c *Custody, write func(io.Writer) error) (f File, took time.Duration, memory int64, err error) {
	t.Helper()
	h := kit.Value(c.Begin(extract))(t)
	defer h.Close()
	p, err := h.Begin(1, archive.ExtractFile{Extract: extract.ID, Name: "large", Table: "IA_INVOICE"})
	kit.Must(t, err)
	defer p.Abandon()
	m := &memoryWriter{t: t, w: p}
	kit.Must(t, write(m))
	begun := time.Now()
	f, err = p.Commit(t.Context())
	return f, time.Since(begun), max(m.peak, anonymousMemory(t)), err
}

// mostMemory is what a file of any size may need. The race detector needs several times as much.
const mostMemory = 64 << 20

// I21: a file that unpacks to more than the limit is refused as damaged as soon as the limit is reached, and nothing of it stays. One that
// unpacks to just the limit is kept.
func TestCommit_I21_Bombs(t *testing.T) {
	const limit = 8 << 20
	far := int64(512 << 20)
	if kit.Race {
		far = 32 << 20 // to write it takes minutes there
	}
	twoEntries := func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, name := range []string{"a", "b"} {
			entry, err := z.Create(name)
			if err == nil {
				_, err = io.Copy(entry, zeros(limit/2+1))
			}
			if err != nil {
				return err
			}
		}
		return z.Close()
	}
	type row struct {
		write  func(io.Writer) error
		isKept bool
	}
	kit.Rows(t, map[string]row{
		"ZIP":            {func(w io.Writer) error { return writeZIP(w, zip.Deflate, far) }, false},
		"ZIPOneTooMany":  {func(w io.Writer) error { return writeZIP(w, zip.Deflate, limit+1) }, false},
		"ZIPTwoEntries":  {twoEntries, false},
		"ZIPAtTheLimit":  {func(w io.Writer) error { return writeZIP(w, zip.Deflate, limit) }, true},
		"Gzip":           {func(w io.Writer) error { return writeGzip(w, far) }, false},
		"GzipOneTooMany": {func(w io.Writer) error { return writeGzip(w, limit+1) }, false},
		"GzipAtTheLimit": {func(w io.Writer) error { return writeGzip(w, limit) }, true},
	}, func(t *testing.T, r row) {
		dir := t.TempDir()
		c := open(t, dir, nil)
		c.maxUnpacked = limit
		var bomb bytes.Buffer
		kit.Must(t, r.write(&bomb))
		_, took, memory, err := keepStream(t, c, func(w io.Writer) error { _, err := w.Write(bomb.Bytes()); return err })
		left, errDir := os.ReadDir(dir + "/extracts/4711/files")
		if damaged, is := errors.AsType[*DamagedError](err); r.isKept == is || is && damaged.Why != "it unpacks to more than 8 MiB" || errDir != nil || (len(left) == 1) != r.isKept {
			t.Errorf("%v; %v, %v", err, left, errDir)
		}
		// All 512 MiB take more than a second of one core. Eight take some ten milliseconds.
		kit.Check(t, took <= time.Second && (memory <= mostMemory || kit.Race),
			"it took %v and %d MiB", took, memory>>20)
	})
}

// I21: a file that unpacks to more than the limit is not read either, as when it
// came while the limit was another one.
func TestEachEntry_I21_Bombs(t *testing.T) {
	c := open(t, t.TempDir(), nil)
	for i, write := range []func(io.Writer) error{
		func(w io.Writer) error { return writeZIP(w, zip.Deflate, 8<<20+1) },
		func(w io.Writer) error { return writeGzip(w, 8<<20+1) },
	} {
		c.maxUnpacked = 16 << 20
		f, _, _, err := keepStream(t, c, write)
		kit.Must(t, err)
		c.maxUnpacked = 8 << 20
		read := int64(0)
		err = c.EachEntry(Manifest{folder: string(extract.ID)}, HeldFile{File: f}, func(_ string, content io.Reader) (err error) {
			read, err = io.Copy(io.Discard, content)
			return err
		})
		_, is := errors.AsType[*DamagedError](err)
		kit.Check(t, is && read <= 8<<20, "%d: %d bytes, %v, want a *DamagedError after 8 MiB at most", i, read, err)
	}
}

// I21: a file of 2 GB, and a ZIP whose entry has more than 4 GiB and so the numbers of ZIP64, are kept as they stream, in little memory.
func TestCommit_I21_LargeFiles(t *testing.T) {
	if kit.Long(t, "extract files of 2 GB and more"); kit.Race {
		t.Skip("the race detector makes files of 2 GB take many minutes")
	}
	const gib = 1 << 30
	type row struct {
		write func(io.Writer) error
		size  int64
	}
	kit.Rows(t, map[string]row{
		"Stored2GB":   {func(w io.Writer) error { return writeZIP(w, zip.Store, 2*gib) }, 2 * gib},
		"ZIP64Of4GiB": {func(w io.Writer) error { return writeZIP(w, zip.Deflate, 4*gib+1) }, 1 << 20},
		"Gzip2GB":     {func(w io.Writer) error { return writeGzip(w, 2*gib) }, 1 << 20},
	}, func(t *testing.T, r row) {
		dir := t.TempDir()
		c := open(t, dir, nil)
		c.maxUnpacked = 8 * gib
		f, took, memory, err := keepStream(t, c, r.write)
		t.Logf("%d bytes, the commit took %v, %d MiB of memory", f.Size, took.Round(time.Millisecond), memory>>20)
		kit.Check(t, err == nil && f.Size >= r.size && strings.HasPrefix(f.Stored, "0001-") && memory <= mostMemory,
			"%+v, %d MiB, %v", f, memory>>20, err)
	})
}
