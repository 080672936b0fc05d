package packager

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	klauspost "github.com/klauspost/compress/flate"

	"vaultd/internal/test/kit"
)

// squeezed compresses as an entry does.
func squeezed(t testing.TB, s *runDeflater, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	s.reset(&b)
	for rest := []byte(content); len(rest) > 0; rest = rest[min(len(rest), maxHeld):] {
		kit.Must(t, s.write(rest[:min(len(rest), maxHeld)]))
	}
	kit.Must(t, s.close())
	return b.Bytes()
}

func mustSqueezer(t testing.TB, level int) *runDeflater {
	t.Helper()
	s := kit.Value(newRunDeflater(level))(t)
	return s
}

func TestMain(m *testing.M) { os.Exit(kit.MainOfManyFiles(m)) }

// Whatever the content, another program's inflate gives it back, and it never
// grows by more than what stored blocks need.
func TestSqueeze_I4_AnythingComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	contents := []string{"x", noise(1, 3*maxHeld), prose(r, maxHeld+1), uneven(r, 2*maxHeld+1), strings.Repeat(noise(2, minRun+1)+"endstream", 40)}
	sizes := []int{2, 100, blockSize - 1, blockSize, blockSize + 1, minRun - 1, minRun, minRun + 1, maxHeld + 1, maxHeld - 1, maxHeld}
	more := 15
	if kit.Sampled(t, "random contents") {
		sizes, more = sizes[:8], 3
	}
	for _, n := range sizes {
		contents = append(contents, noise(3, n), prose(r, n), uneven(r, n), paper(r, n)[:n], anything(r, n))
	}
	for range more {
		contents = append(contents, anything(r, 1+r.IntN(400_000)), paper(r, 100_000))
	}
	for word, level := range levels {
		if kit.Sampled(t, "random contents") && word != "default" {
			continue
		}
		s := mustSqueezer(t, level)
		for i, content := range contents {
			packed := squeezed(t, s, content)
			got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
			kit.Need(t, err == nil && string(got) == content,
				"level %d, content %d of %d bytes: %v", level, i, len(content), err)
			over := len(packed) - len(content)
			kit.Check(t, over <= 32+len(content)/1_000, "level %d, content %d of %d bytes grew by %d", level, i, len(content), over)
		}
	}
}

func FuzzSqueeze(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		f.Add([]byte(anything(r, 30_000)))
		f.Add([]byte(paper(r, 30_000)))
	}
	s := mustSqueezer(f, 7)
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) == 0 {
			return // is stored
		}
		packed := squeezed(t, s, string(content))
		got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		kit.Check(t, err == nil && bytes.Equal(got, content) && len(packed) <= len(content)+len(content)/1_000+32,
			"%d bytes became %d, which became %d: %v", len(content), len(packed), len(got), err)
	})
}

func TestSplit_LooksForRepetitionsWhereThereAreSome(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	picture := scanned(r, 600, 800)
	type row struct {
		content string
		matched [2]int // percent: at least, at most
	}
	kit.Rows(t, map[string]row{
		"Text":                  {prose(r, 100_000), [2]int{100, 100}},
		"Noise":                 {noise(1, 100_000), [2]int{0, 0}},
		"NoiseThenText":         {noise(1, 100_000) + prose(r, 100_000), [2]int{50, 52}},
		"TextThenNoise":         {prose(r, 100_000) + noise(1, 100_000), [2]int{50, 52}},
		"NoNameAndNoMagic":      {"\x00\x01" + noise(10, 90_000), [2]int{0, 2}},
		"MagicButText":          {"\xff\xd8\xff" + prose(r, 90_000), [2]int{100, 100}},
		"Uneven":                {uneven(r, 100_000), [2]int{0, 10}},
		"Scan":                  {picture, [2]int{0, 5}},
		"SmallPicture":          {noise(2, 3_000), [2]int{0, 0}},
		"NoiseThatComesAgain":   {strings.Repeat(noise(3, 9_000), 20), [2]int{100, 100}},
		"ShortStreamsInText":    {strings.Repeat(noise(4, minRun/2)+prose(r, 2_000), 9), [2]int{100, 100}},
		"LettersOfBase64":       {strings.Map(func(r rune) rune { return r&0x3f + '0' }, noise(5, 90_000)), [2]int{100, 100}},
		"AllTheSame":            {strings.Repeat("\x80", 90_000), [2]int{100, 100}},
		"PictureInAnotherFile":  {"%PDF-1.7\n" + prose(r, 5_000) + picture + prose(r, 5_000), [2]int{1, 25}},
		"LongStreamsOfAPDF":     {"%PDF-1.7\nstream\n" + noise(8, 90_000) + "\nendstream\nstream\n" + noise(9, 30_000), [2]int{0, 5}},
		"EndstreamInsideStream": {"stream\n" + noise(6, 40_000) + "endstream" + noise(7, 40_000), [2]int{0, 5}},
	}, func(t *testing.T, row row) {
		matchedBytes, again := 0, ""
		err := splitRuns([]byte(row.content), func(w encoding, data []byte) error {
			if w == matched {
				matchedBytes += len(data)
			}
			again += string(data)
			return nil
		})
		if percent := matchedBytes * 100 / len(row.content); err != nil || percent < row.matched[0] || percent > row.matched[1] {
			t.Errorf("%d %% of %d bytes, want %v: %v", percent, len(row.content), row.matched, err)
		}
		kit.Want(t, "the runs are not the content", again, row.content)
	})
}

// level9 is the size of the same content at the highest level throughout.
func level9(t *testing.T, files tree) (n int64) {
	t.Helper()
	for _, content := range files {
		var b bytes.Buffer
		w := kit.Value(klauspost.NewWriter(&b, 9))(t)
		w.Write([]byte(content))
		w.Close()
		n += int64(min(b.Len(), len(content)))
	}
	return n
}

func entrySizes(t *testing.T, path string) (n int64) {
	t.Helper()
	z := kit.Value(zip.OpenReader(path))(t)
	defer z.Close()
	for _, f := range z.File {
		n += int64(f.CompressedSize64)
	}
	return n
}

// G6: not to look for repetitions in most bytes costs less than 0.3 % of the size.
func TestBuild_G6_SizeOfLevel9(t *testing.T) {
	kit.Long(t, "the sizes of large sets")
	r := rand.New(rand.NewPCG(6, 6))
	sets := map[string][]tree{}
	for range 12 {
		folder := tree{"invoice.xml": prose(r, 8_000+r.IntN(30_000)), "invoice.pdf": paper(r, 200_000+r.IntN(200_000))}
		if r.IntN(5) < 2 {
			folder["scan.jpg"] = scanned(r, 700, 1000)
		}
		sets["Normal"] = append(sets["Normal"], folder)
		sets["Tiny"] = append(sets["Tiny"], tree{"invoice.xml": prose(r, 5_000), "invoice.pdf": paper(r, 9_000), "logo.jpg": scanned(r, 60, 60)})
	}
	for name, folders := range sets {
		t.Run(name, func(t *testing.T) { asLevel9(t, folders) })
	}
	t.Run("Real", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join(corpus(t), "*", "*"))
		kit.Need(t, err == nil && len(paths) != 0, "%d invoices: %v", len(paths), err)
		var folders []tree
		for _, path := range paths {
			b := kit.Value(os.ReadFile(path))(t)
			folders = append(folders, tree{filepath.Base(path): string(b)})
		}
		asLevel9(t, folders)
	})
}

func asLevel9(t *testing.T, folders []tree) {
	t.Helper()
	var got, want, raw int64
	for _, files := range folders {
		want += level9(t, files)
		for _, content := range files {
			raw += int64(len(content))
		}
		_, root := drop(t, files)
		write(t, filepath.Join(root.Name(), "metadata.json"), sidecar)
		to := filepath.Join(t.TempDir(), "a.zip")
		kit.Value(buildAt(t.Context(), root, rules, to))(t)
		got += entrySizes(t, to)
	}
	t.Logf("%d of %d bytes, level 9 makes %d: %.4f of it", got, raw, want, float64(got)/float64(want))
	kit.Check(t, got*1000 <= want*1003, "%d bytes are more than 1.003 of level 9's %d", got, want)
}

// The same bytes whatever runs beside it and however many at once.
func TestBuild_I10_SameBytesOnAnyNumberOfCores(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	pages := 1_500_000
	if kit.Sampled(t, "random contents") {
		pages = 300_000
	}
	files := tree{"metadata.json": sidecar, "a.pdf": paper(r, pages), "b.xml": prose(r, 50_000), "c.bin": anything(r, 300_000)}
	_, root := drop(t, files)
	want := mustBuild(t, root, rules).Package.SHA256
	for _, cores := range []int{1, 2, 8} {
		old := runtime.GOMAXPROCS(cores)
		var g sync.WaitGroup
		for i := range 6 {
			to := filepath.Join(t.TempDir(), "a.zip")
			g.Go(func() {
				rules := rules
				if i%3 == 2 {
					rules.Compression = "max" // leaves a bench that does not fit
				}
				s, err := buildAt(t.Context(), root, rules, to)
				kit.Check(t, err == nil && (i%3 == 2 || s.Package.SHA256 == want),
					"%d cores: %v, %v", cores, s.Package.SHA256, err)
			})
		}
		g.Wait()
		runtime.GOMAXPROCS(old)
	}
}

// A change of these bytes is allowed, because they are nobody's identity, and is to
// be told in CHANGELOG: an upload that was begun with the old ones, whose ZIP is
// lost, cannot be repeated with the new.
func TestBuild_BytesAreKnown(t *testing.T) {
	_, root := drop(t, mixed())
	for compression, want := range map[string]string{
		"fast":    "2af014005520c05854b9f0a243b85eff1a4809f8aecb9492e0dc53e5671eddcb",
		"default": "8d7c30d1d4791c148b12fb0090082650029108c492384b294dcd7f6a7d8c4a0d",
		"max":     "60c66b73e86f3dc6cd187267b64a36ee4924c31d2215e9fc1c59f578f01693b1",
	} {
		r := rules
		r.Compression = compression
		kit.Want(t, compression, mustBuild(t, root, r).Package.SHA256.String(), want)
	}
}

// Programs that people unpack with find no fault in ZIPs of anything.
func TestBuild_I4_OtherProgramsTestIt(t *testing.T) {
	kit.Long(t, "ZIPs of random content, tested by other programs")
	r := rand.New(rand.NewPCG(9, 9))
	var zips []string
	for i := range 12 {
		_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": paper(r, 80_000), "b.bin": anything(r, 1+r.IntN(300_000)),
			"c.bin": anything(r, 1+i*i*30_000), "d.xml": prose(r, 10_000)})
		zips = append(zips, filepath.Join(t.TempDir(), fmt.Sprint(i, ".zip")))
		kit.Value(buildAt(t.Context(), root, rules, zips[i]))(t)
	}
	const script = "import sys, zipfile\nfor z in sys.argv[1:]: assert zipfile.ZipFile(z).testzip() is None, z"
	for _, tool := range [][]string{{"unzip", "-tq"}, {"python3", "-c", script}} {
		t.Run(tool[0], func(t *testing.T) {
			if _, err := exec.LookPath(tool[0]); err != nil {
				kit.Missing(t, tool[0]+" is not installed")
			}
			for _, z := range zips {
				out, err := exec.CommandContext(t.Context(), tool[0], append(tool[1:], z)...).CombinedOutput()
				kit.Check(t, err == nil, "%v\n%s", err, out)
			}
		})
	}
}

// Sizes stand before what they are the sizes of, as long as the packed file fits
// into memory; behind it otherwise.
func TestBuild_SizesStandBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	_, root := drop(t, tree{"metadata.json": sidecar, "empty.txt": "", "held.bin": noise(1, maxHeld), "later.bin": noise(2, 2*maxHeld),
		"shrinks.xml": prose(r, 4*maxHeld), "small.txt": "x"})
	to := filepath.Join(t.TempDir(), "a.zip")
	kit.Value(buildAt(t.Context(), root, rules, to))(t)
	z := kit.Value(zip.OpenReader(to))(t)
	defer z.Close()
	for _, f := range z.File {
		later := f.Flags&sizesFollowFlag != 0
		kit.Check(t, later == (f.Name == "later.bin"), "%s: flags %x", f.Name, f.Flags)
		asItIs := f.Method == zip.Store
		kit.Check(t, asItIs == (f.Name == "empty.txt" || f.Name == "held.bin" || f.Name == "small.txt"), "%s: method %d", f.Name, f.Method)
	}
}

// I21: what waits for the next folder holds on to nothing of the last.
func TestBench_I21_ForgetsTheFolder(t *testing.T) {
	b := kit.Value(takeWorkspace(levels["default"]))(t)
	gone := make(chan struct{})
	func() {
		to := &bytes.Buffer{}
		runtime.AddCleanup(to, func(c chan struct{}) { close(c) }, gone)
		b.deflater.reset(to)
		for w := range numEncodings {
			kit.Must(t, b.deflater.writeRun(w, []byte("an invoice")))
		}
	}()
	b.deflater.releaseData()
	for range 50 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(b)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("still held")
	runtime.KeepAlive(b)
}
