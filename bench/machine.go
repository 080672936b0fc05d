package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// machine is where the figures come from. Figures of two machines, or of two times, are not to be compared.
type machine struct {
	Cores      int
	Load       float64 // average of the last minute, before the first run
	Kernel, Go string
	CPU        string
	Version    string        // of vaultd
	Program    string        // the beginning of its SHA-256: builds may have the same version
	Sync       time.Duration // median time of a small durable write in the work directory
	FileSystem string        // of the work directory
	Quick      bool
	Pairs      int
	Seed       uint64
}

// fastDisk is a disk, or a memory, on which a sync costs next to nothing.
const fastDisk = 500 * time.Microsecond

// describeMachine describes the machine. What cannot be found out stays empty.
func (b *bench) describeMachine(ctx context.Context) machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Quick: b.quick, Pairs: b.pairs, Seed: b.seed}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	m.CPU = readField("/proc/cpuinfo", "model name")
	if bin, err := b.program(ctx); err == nil {
		out, err := child(ctx, bin, "version").Output()
		first, _, _ := strings.Cut(string(out), "\n")
		if err == nil {
			m.Version = first
		}
		if text, err := os.ReadFile(bin); err == nil {
			m.Program = fmt.Sprintf("%.6x", sha256.Sum256(text))
		}
	}
	m.Sync, m.FileSystem = syncTime(b.work), fileSystem(b.work)
	return m
}

// readField is the first line of that name in a file of "name : value" lines.
func readField(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// syncTime is the median of a hundred durable writes of 4 KB over the same place; 0 where it cannot be tried.
func syncTime(dir string) time.Duration {
	path := filepath.Join(dir, "sync-probe")
	f, err := os.Create(path)
	if err != nil {
		return 0
	}
	defer func() { _, _ = f.Close(), os.Remove(path) }() // a probe leaves nothing
	took := make([]float64, 100)
	page := make([]byte, 4096)
	for i := range took {
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0
		}
		took[i] = time.Since(began).Seconds()
	}
	return time.Duration(median(took) * float64(time.Second))
}

func fileSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.NFS_SUPER_MAGIC: "nfs"}
	if name, ok := names[int64(s.Type)]; ok {
		return name
	}
	return fmt.Sprintf("type %#x", s.Type)
}

// String is the machine in the words of the report.
func (m machine) String() string {
	disk := "slow"
	if m.Sync < fastDisk {
		disk = "fast"
	}
	size := "full size"
	if m.Quick {
		size = "a tenth of the size"
	}
	version := cmp.Or(m.Version, "vaultd of unknown version")
	return fmt.Sprintf("%d cores (%s); Linux %s, %s; work directory on %s, a small durable write takes %.2f ms (%s disk); %s, SHA-256 %s…; %s, seed %d",
		m.Cores, m.CPU, m.Kernel, m.Go, m.FileSystem, m.Sync.Seconds()*1000, disk, version, cmp.Or(m.Program, "unknown"), size, m.Seed)
}
