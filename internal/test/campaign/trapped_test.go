package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

// deedsIn is set, to a directory, for a child that is to do what deeds says.
const deedsIn = "CAMPAIGN_DEEDS"

// deeds changes a directory in every way that is trapped, and syncs some of it.
func deeds(dir string) error {
	at := func(name string) string { return filepath.Join(dir, "drops", name) }
	file, err := os.OpenFile(at("a/overwritten"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("XXXX"), 2)
	return errors.Join(err,
		os.Mkdir(at("a/dir"), 0o770),
		os.WriteFile(at("a/made"), []byte("new"), 0o660),
		os.WriteFile(at("a/emptied"), []byte("more"), 0o660),
		os.Rename(at("a/moved"), at("b/moved")),
		os.Rename(at("a/moving"), at("a/replaced")),
		os.Remove(at("a/removed")), os.Remove(at("a/removed dir")),
		os.WriteFile(at("c/safe"), []byte("safe"), 0o660), synced(at("c/safe")), synced(at("c")),
		os.WriteFile(at("c/no name yet"), []byte("its content is safe"), 0o660), synced(at("c/no name yet")))
}

func synced(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// prepare makes what deeds works on, and the watcher over a child that does it.
func prepare(t *testing.T, fatal func(point, int) bool) (dir string, do func() *watcher) {
	t.Helper()
	if !canTrap(t, "/bin/true") {
		t.SkipNow()
	}
	dir = t.TempDir()
	for _, sub := range []string{"drops/a/removed dir", "drops/b", "drops/c", "aside"} {
		kit.Must(t, os.MkdirAll(filepath.Join(dir, sub), 0o770))
	}
	for _, name := range []string{"moved", "moving", "replaced", "removed", "overwritten", "emptied"} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, "drops/a", name), []byte("once "+name), 0o660))
	}
	return dir, func() *watcher {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), deedsIn+"="+dir)
		l := kit.Value(startTrapped(cmd))(t)
		w := &watcher{listener: l, pid: cmd.Process.Pid, dir: dir, fatal: fatal, over: make(chan struct{}), seen: map[string]int{},
			power: &power{aside: filepath.Join(dir, "aside")}}
		go w.run()
		if err := cmd.Wait(); err != nil && fatal == nil {
			t.Fatal(err)
		}
		<-w.over
		return w
	}
}

// A cut of the power takes back what was not synced and nothing else: the campaign would prove little if it did not.
func TestPowerCut(t *testing.T) {
	dir, do := prepare(t, nil)
	want := tree(t, dir)
	want["drops/c/safe"] = "safe"
	w := do()
	after := tree(t, dir)
	if after["drops/a/emptied"] != "more" || after["drops/b/moved"] != "once moved" || after["drops/a/replaced"] != "once moving" || after["drops/a/removed dir"] != "" {
		t.Fatalf("it did not do its work: %q", after)
	}
	for seed := uint64(0); ; seed++ { // a cut that takes everything
		if rand.New(rand.NewPCG(seed, 0)).IntN(2) == 0 {
			w.power.cut(rand.New(rand.NewPCG(seed, 0)))
			break
		}
	}
	kit.Want(t, "after the cut", tree(t, dir), want)
}

// Each trapped call can be the last: the process dies, the call is not made, and those before it are.
func TestKilledBeforeTheCall(t *testing.T) {
	steps := map[string]bool{}
	last := ""
	for n := 1; n < 40; n++ {
		dir, do := prepare(t, func(_ point, all int) bool { return all == n })
		w := do()
		_, killed := w.result()
		if killed == "" {
			if n < 15 || len(steps) < n-5 { // a sync changes nothing that can be seen
				t.Errorf("%d calls, %d different ends", n-1, len(steps))
			}
			return
		}
		kit.Want(t, "calls until the end", w.all, n)
		now := fmt.Sprint(tree(t, dir))
		kit.Check(t, !steps[now] || now == last,
			"killed before call %d (%s), it is as it was long before: %s", n, killed, now)
		steps[now], last = true, now
	}
}

// tree gives what lies in the drop folders below dir: the content of files, "/" for folders.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	kit.Must(t, filepath.WalkDir(filepath.Join(dir, "drops"), func(path string, d os.DirEntry, err error) error {
		rel, errRel := filepath.Rel(dir, path)
		if err = cmp.Or(err, errRel); err != nil || d.IsDir() {
			all[rel] = "/"
			return err
		}
		data, err := os.ReadFile(path)
		all[rel] = string(data)
		return err
	}))
	return all
}
