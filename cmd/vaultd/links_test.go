package main_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// A disk is too small, and somebody puts a link to a larger one in the place of the spool: check and run say what to do instead, and the
// files there stay.
func TestCheck_I19_TheSpoolIsALink(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	big := filepath.Join(s.dir, "bigdisk")
	kit.Must(t, os.Mkdir(big, 0o700))
	foreign := []string{"photo.jpg", "backup.tar", "half.tmp", "fetch-1.tmp"}
	for _, name := range foreign {
		kit.Must(t, os.WriteFile(filepath.Join(big, name), []byte("theirs"), 0o600))
	}
	kit.Must(t, os.Symlink(big, filepath.Join(s.dir, "state", "spool")))
	for _, command := range []string{"check", "run"} {
		out, code := s.vaultd(command)
		for _, want := range []string{"state_dir", "spool is a link", "remove the link", "mount --bind", "set state_dir to a folder on the larger disk"} {
			kit.Check(t, code == exitConfig && strings.Contains(out, want),
				"%s ends with %d and does not say %q: %s", command, code, want, out)
		}
	}
	for _, name := range foreign {
		kit.Want(t, name, string(kit.Value(os.ReadFile(filepath.Join(big, name)))(t)), "theirs")
	}
}

// A bind mount of the same file system in an archived folder whose time is over: the files behind it stay where they really are, people
// are told, and once it is unmounted the folder goes.
func TestRun_I18_ABindMountInAnArchivedFolder(t *testing.T) {
	if !apart(t) {
		return
	}
	_, s := newServed(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond}, fast)
	s.edit("{name: acme,", "{name: acme, after_archive: {action: delete, grace: 6s},")
	other := filepath.Join(s.dir, "other")
	s.drop("acme", "Huber 88", map[string][]byte{"rechnung.pdf": []byte("%PDF")}, bill("88"))
	inside := filepath.Join(s.dir, "acme/Huber 88/Anlagen")
	kit.Must(t, os.Mkdir(inside, 0o770))
	kit.Must(t, os.WriteFile(filepath.Join(inside, "vertrag.pdf"), []byte("%PDF the same bytes"), 0o660))
	kit.Must(t, os.Mkdir(other, 0o770))
	kit.Must(t, os.WriteFile(filepath.Join(other, "vertrag.pdf"), []byte("%PDF the same bytes"), 0o660))
	p := s.begin()
	kept := ""
	kit.Await(t, "the folder to be kept", func() bool {
		found, _ := filepath.Glob(filepath.Join(s.dir, "acme/_archived/*/Huber 88/Anlagen"))
		if len(found) > 0 {
			kept = found[0]
		}
		return kept != ""
	})
	kit.Must(t, unix.Mount(other, kept, "", unix.MS_BIND, ""))
	kit.Await(t, "people to be told", func() bool {
		out, _ := s.vaultd("status")
		return strings.Contains(out, "something is mounted at") && strings.Contains(out, kept)
	})
	kit.Want(t, "the foreign file",
		string(kit.Value(os.ReadFile(filepath.Join(other, "vertrag.pdf")))(t)), "%PDF the same bytes")
	kit.Must(t, unix.Unmount(kept, unix.MNT_DETACH))
	kit.Await(t, "the folder to go", func() bool { _, err := os.Lstat(filepath.Dir(kept)); return os.IsNotExist(err) })
	kit.Want(t, "exit", p.stop(t), 0)
	kit.Want(t, "the foreign file", kit.Err(os.Lstat(filepath.Join(other, "vertrag.pdf"))), nil)
}

// ownGroup is the name of this process's group.
func ownGroup(t *testing.T) string {
	t.Helper()
	g, err := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	if err != nil {
		t.Skip("this process's group has no name:", err)
	}
	return g.Name
}

// The program behind a proxy: on the socket the proxy says who asks; on the port nobody can say so.
func TestProxySocket_I7_OverTheRealProgram(t *testing.T) {
	s := newSite(t, "http://127.0.0.1:1", fast)
	address, path := freeAddress(t), filepath.Join(s.dir, "pages.sock")
	s.edit(`http: {listen: ""}`, `http: {listen: "`+address+`", access: {proxy: {socket: `+path+`, group: `+ownGroup(t)+`, rights: {anna: [read, metrics], guest: []}}}}`)
	day := s.start("run")
	over := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	ask := func(c *http.Client, host, page, user string) (int, string) {
		r := kit.Value(http.NewRequest(http.MethodGet, "http://"+host+page, nil))(t)
		r.Header.Set("Remote-User", user)
		res, err := c.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		body := kit.Value(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(body)
	}
	kit.Await(t, "the socket", func() bool { code, _ := ask(over, "archive.example", "/livez", ""); return code != 0 })
	for _, row := range []struct {
		client           *http.Client
		host, page, user string
		code             int
	}{
		{over, "archive.example", "/search?q=x", "anna", 200}, {over, "archive.example", "/search?q=x", "guest", 403}, {over, "archive.example", "/", "guest", 200}, {over, "archive.example", "/", "eve", 403},
		{over, "archive.example", "/", "", 403}, {over, "archive.example", "/metrics", "anna", 200}, {over, "archive.example", "/metrics", "guest", 403}, {over, "archive.example", "/login", "anna", 404},
		{http.DefaultClient, address, "/", "anna", 403}, {http.DefaultClient, address, "/search?q=x", "anna", 403}, {http.DefaultClient, address, "/metrics", "anna", 401},
	} {
		code, body := ask(row.client, row.host, row.page, row.user)
		kit.Check(t, code == row.code, "%s%s for %q: %d %s", row.host, row.page, row.user, code, body)
	}
	day.stop(t)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket is left behind:", err)
	}
}
