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
	"testing"

	"vaultd/internal/test/kit"
)

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
