package packager

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// noise is what no compressor shrinks; the same seed gives the same bytes.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{seed})
	src.Read(b)
	return string(b)
}

// mixed has one file of each way into the ZIP.
func mixed() tree {
	return tree{
		"metadata.json": sidecar, "empty.txt": "", "sub/Größe ö.xml": strings.Repeat("<a>text</a>\n", 500), "tilde~.txt": "x",
		"scan.jpg": "\xff\xd8\xff" + noise(1, 50_000), "random.bin": noise(2, 5_000),
		"large.pdf": "%PDF-1.7\n" + strings.Repeat(noise(3, 20_000)+strings.Repeat("0 obj ", 9_000), 15),
		"large.png": "\x89PNG\r\n\x1a\n" + noise(4, maxHeld+1),
		"one.bin":   noise(5, maxHeld), "日本語.txt": "日本語",
		"long.xml":  strings.Repeat("<a>text</a>\n", 200_000),
		"large.tif": uneven(rand.New(rand.NewPCG(1, 1)), 2*maxHeld),
		"with.pdf":  "%PDF-1.7\n" + strings.Repeat("1 0 obj\nstream\n"+noise(6, 40_000)+"\nendstream\n<< /Type /Page >>\n", 3),
	}
}

func unzip(t *testing.T, path string) tree {
	t.Helper()
	z := kit.Value(zip.OpenReader(path))(t)
	defer z.Close()
	got := tree{}
	for _, f := range z.File {
		r := kit.Value(f.Open())(t)
		b := kit.Value(io.ReadAll(r))(t)
		got[f.Name] = string(b)
		kit.Check(t, f.Flags&0x800 != 0 && (f.Method != zip.Store || f.Flags&8 == 0) && f.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)),
			"%s: flags %x, method %d, time %s", f.Name, f.Flags, f.Method, f.Modified)
		over := int64(f.CompressedSize64) - int64(f.UncompressedSize64)
		kit.Check(t, over <= int64(f.UncompressedSize64)/5_000, "%s grew by %d bytes", f.Name, over)
	}
	return got
}

func same(t *testing.T, got, want tree) {
	t.Helper()
	kit.Want(t, "files", len(got), len(want))
	for name := range want {
		kit.Want(t, name, string(got[name]), string(want[name]))
	}
}

func TestBuild_I4_WhatIsSealedIsWhatWasDropped(t *testing.T) {
	for _, compression := range []string{"fast", "default", "max"} {
		t.Run(compression, func(t *testing.T) {
			files := mixed()
			_, root := drop(t, files)
			delete(files, "metadata.json")
			path := filepath.Join(t.TempDir(), "a.zip")
			write(t, path, "an older one")
			write(t, filepath.Join(filepath.Dir(path), ".a.zip.tmp"), "left by a crash")
			r := rules
			r.Compression = compression
			s := kit.Value(buildAt(t.Context(), root, r, path))(t)
			same(t, unzip(t, path), files)
			b := kit.Value(os.ReadFile(path))(t)
			kit.Want(t, "package", s.Package, archive.Package{Path: path, Size: int64(len(b)), SHA256: archive.Sum(b), MD5: md5.Sum(b)})
			for _, f := range s.Files {
				if f.SHA256 != archive.Sum([]byte(files[f.Path])) || f.Size != int64(len(files[f.Path])) {
					t.Errorf("%s: %+v, want f.SHA256 = %v, f.Size = %v", f.Path, f, archive.Sum([]byte(files[f.Path])), int64(len(files[f.Path])))
				}
			}
			info, _ := os.Stat(path)
			kit.Check(t, info.Mode() == 0o600, "mode %v", info.Mode())
			left, _ := os.ReadDir(filepath.Dir(path))
			kit.Check(t, len(left) == 1, "left in the spool: %v", left)
		})
	}
}

func TestBuild_SameInputSameBytes(t *testing.T) {
	for _, compression := range []string{"fast", "default", "max"} {
		if kit.Sampled(t, "each compression") && compression != "default" {
			continue
		}
		t.Run(compression, func(t *testing.T) {
			r := rules
			r.Compression = compression
			files := mixed()
			var first Sealed
			for i := range 4 {
				if i == 2 { // other work in between must not show through the tables that are used again
					_, other := drop(t, tree{"metadata.json": sidecar, "a.xml": strings.Repeat("<other/>", 400_000)})
					mustBuild(t, other, r)
				}
				dir, root := drop(t, files)
				kit.Must(t, os.Chtimes(dir+"/scan.jpg", time.Now(), time.Unix(int64(i)*1e8, 0)))
				s := mustBuild(t, root, r)
				if s.Package.Path = ""; i == 0 {
					first = s
				}
				if got, want := fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", first); got != want {
					t.Fatalf("build %d differs:\n%s\n%s", i, got, want)
				}
			}
			_, root := drop(t, files)
			v, err := ValidateFolder(t.Context(), root, r)
			if first.Package = (archive.Package{}); err != nil || fmt.Sprintf("%+v", v) != fmt.Sprintf("%+v", first) {
				t.Errorf("Validate differs: %v", err)
			}
		})
	}
}

func TestBuild_OtherProgramsUnpackIt(t *testing.T) {
	files := mixed()
	_, root := drop(t, files)
	delete(files, "metadata.json")
	path := filepath.Join(t.TempDir(), "a.zip")
	kit.Value(buildAt(t.Context(), root, rules, path))(t)
	for _, tool := range [][]string{{"unzip", "-q", path, "-d"}, {"python3", "-m", "zipfile", "-e", path}, {"bsdtar", "-xf", path, "-C"}} {
		t.Run(tool[0], func(t *testing.T) {
			if _, err := exec.LookPath(tool[0]); err != nil {
				kit.Missing(t, tool[0]+" is not installed")
			}
			to := t.TempDir()
			cmd := exec.CommandContext(t.Context(), tool[0], append(tool[1:], to)...)
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
			out, err := cmd.CombinedOutput()
			kit.Need(t, err == nil, "%v\n%s", err, out)
			same(t, readTree(t, to), files)
		})
	}
}

func readTree(t *testing.T, dir string) tree {
	t.Helper()
	got := tree{}
	kit.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[rel] = string(b)
		return err
	}))
	return got
}

func TestBuild_TooLarge(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "scan.tif": noise(1, 1_200_000), "small.pdf": "x"})
	r := rules
	r.MaxSize = 1_100_000
	refusalOf(t, root, r, "NOT ARCHIVED. Packed, the folder is more than 1.1 MB; the archive takes 1.1 MB. Largest: scan.tif, 1.2 MB. Save it as a smaller PDF, then move")
	r.MaxSize = 1_300_000
	n := mustBuild(t, root, r).Package.Size
	r.MaxSize = n
	mustBuild(t, root, r)
	r.MaxSize = n - 1
	refusalOf(t, root, r, "Largest: scan.tif")
}

func TestBuild_ShrinksBelowTheLimit(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "a.xml": strings.Repeat("<a/>", 1_000_000)})
	r := rules
	r.MaxSize = 100_000
	n := mustBuild(t, root, r).Package.Size
	kit.Check(t, n <= 10_000, "4 MB of the same became %d bytes", n)
}

func TestBuild_I21_LargeFileNeverInMemory(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "large.bin": noise(1, 60_000_000)})
	runtime.GC()
	var before, m runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		var peak uint64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- peak
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		}
	}()
	mustBuild(t, root, Rules{Vault: "V", Compression: "fast"})
	close(stop)
	peak := <-done
	kit.Check(t, peak != 0 && peak <= before.HeapInuse+20_000_000, "heap grew from %d to %d bytes", before.HeapInuse, peak)
}

func TestReadBack_I4_FindsDamage(t *testing.T) {
	_, root := drop(t, mixed())
	path := filepath.Join(t.TempDir(), "a.zip")
	s := kit.Value(buildAt(t.Context(), root, rules, path))(t)
	good := kit.Value(os.ReadFile(path))(t)
	check := func(b []byte, w written, files []archive.File) error {
		bench := kit.Value(takeWorkspace(7))(t)
		sum, err := bench.readBack(context.Background(), bytes.NewReader(b), w, files)
		kit.Check(t, err != nil || sum == archive.Sum(b), "digest %v", sum)
		return err
	}
	wrote := written{size: int64(len(good)), crc: crc32.ChecksumIEEE(good)}
	kit.Must(t, check(good, wrote, s.Files))
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 1
	wrongly := wrote // as if the CRC had been taken after the damage
	wrongly.crc = crc32.ChecksumIEEE(flipped)
	other := append([]archive.File(nil), s.Files...)
	other[0].SHA256[0] ^= 1
	for name, err := range map[string]error{
		"FlippedBit":          check(flipped, wrote, s.Files),
		"FlippedBitInEntry":   check(flipped, wrongly, s.Files),
		"Truncated":           check(good[:len(good)-1], wrote, s.Files),
		"Longer":              check(append(bytes.Clone(good), 0), wrote, s.Files),
		"OtherFileInTheList":  check(good, wrote, other),
		"FewerFilesInTheList": check(good, wrote, s.Files[1:]),
	} {
		kit.Check(t, err != nil && !isRefusal(err), "%s: %v, want an error, not isRefusal(err)", name, err)
	}
}

func TestBuild_I4_DiskThatLies(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": noise(1, 5_000)})
	path := filepath.Join(t.TempDir(), "a.zip")
	write(t, path, "an older one")
	lie := func(op, name string, do func() error) error {
		err := do()
		if op == "write" {
			part, openErr := os.OpenFile(filepath.Join(filepath.Dir(path), durable.TemporaryName(name)), os.O_WRONLY, 0)
			kit.Need(t, openErr == nil, "openErr = %v, want openErr = nil", openErr)
			defer part.Close()
			kit.Value(part.WriteAt([]byte("?"), 2_500))(t)
		}
		return err
	}
	if _, err := buildIn(t.Context(), root, rules, path, lie); err == nil || isRefusal(err) || !strings.Contains(err.Error(), "read back") {
		t.Errorf("got %v", err)
	}
	kit.Want(t, "the older ZIP was touched", string(kit.Value(os.ReadFile(path))(t)), "an older one")
}

func TestBuild_RealInvoices(t *testing.T) {
	dir := corpus(t)
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(path) == dir {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		files := tree{e.Name(): string(b)}
		_, root := drop(t, tree{"metadata.json": sidecar, e.Name(): string(b)})
		to := filepath.Join(t.TempDir(), "a.zip")
		s, err := buildAt(t.Context(), root, rules, to)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		same(t, unzip(t, to), files)
		kit.Check(t, s.Package.Size <= int64(len(b))+300+2*int64(len(e.Name())),
			"%s: %d bytes became %d", path, len(b), s.Package.Size)
		return nil
	})
	kit.Need(t, err == nil && n != 0, "%d invoices: %v", n, err)
	t.Logf("%d invoices packed and unpacked byte for byte", n)
}

// corpus finds the collection of real invoices beside the checkout.
func corpus(t *testing.T) string {
	t.Helper()
	dir := kit.Value(os.Getwd())(t)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if found := filepath.Join(dir, "shared", "invoices"); isDir(found) {
			return found
		}
	}
	t.Skip("no shared/invoices above this package: real invoices are NOT tried")
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
