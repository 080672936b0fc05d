package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// anonymousMemory is what this process has in memory that is no file's.
func anonymousMemory(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc")
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	kb := kit.Value(strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64))(b)
	return kb << 10
}

// cpuTime is what this process has computed, on all cores: the others' work does not count.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	kit.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryGauge looks at the memory now and then.
type memoryGauge struct {
	b             *testing.B
	written, next int64
	peak          int64
}

func (g *memoryGauge) Write(p []byte) (int, error) {
	if g.written += int64(len(p)); g.written >= g.next {
		g.next = g.written + 4<<20
		g.peak = max(g.peak, anonymousMemory(g.b))
	}
	return len(p), nil
}

// BenchmarkReport tells how long the rows of a real ledger take in each form, and the memory that they take: by the slope between two
// sizes it is known for more. What the examination left in memory is told beside it.
func BenchmarkReport(b *testing.B) {
	for _, size := range []int{5_000, 50_000} {
		s := benchShelf(b, size)
		for _, form := range []string{"csv", "xlsx", "page"} {
			b.Run(fmt.Sprint(size, "/", form), func(b *testing.B) {
				for b.Loop() {
					c := s.config()
					a, err := Examine(b.Context(), c)
					kit.Must(b, err)
					examined := anonymousMemory(b)
					debug.FreeOSMemory() // what the proof needed is another measurement
					g := &memoryGauge{b: b}
					base := anonymousMemory(b)
					begun := cpuTime(b)
					switch form {
					case "csv":
						_, err = a.CSV(b.Context(), g, ',')
					case "xlsx":
						_, err = a.XLSX(b.Context(), g)
					case "page":
						_, err = a.Page(b.Context(), io.Discard, TableFile{"x.csv", a.NewCSV(g, ',')}, TableFile{"x.xlsx", a.NewXLSX(g)})
					}
					kit.Must(b, err)
					b.ReportMetric(float64(size)/(cpuTime(b)-begun).Seconds(), "rows/cpu-s")
					b.ReportMetric(float64(examined)/(1<<20), "MiB-examined")
					b.ReportMetric(float64(g.peak-base)/(1<<20), "MiB-rows")
					b.ReportMetric(float64(g.written)/float64(size), "B/row")
				}
			})
		}
	}
}

// benchShelf has so many archived folders in a real ledger, written in batches.
func benchShelf(b *testing.B, size int) *shelf {
	b.Helper()
	s := newShelf(b, "production")
	f := flood{size}
	for from := 0; from < size; from += 1000 {
		var all []ledger.Change
		for i := from; i < min(from+1000, size); i++ {
			at := noon.Add(-time.Duration(size-i) * time.Second)
			it := f.item(i)
			_, doc := it.Sealed()
			all = append(all, ledger.Change{Key: fill.Key(at, i), Events: slices.Concat(it.Life(at, at.Add(time.Hour))[:6]...), Document: doc, At: archive.Instant{Wall: at}})
		}
		s.Commit(all...)
	}
	return s
}
