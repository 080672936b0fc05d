package emulator

import (
	"net/http/httptest"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// Every row of the table is known to the faults, and every row of the API but the tokens' wants credentials of its own service.
func TestOperations(t *testing.T) {
	w := newPDFWorld(t, nil)
	for _, o := range w.operations {
		if r := (Rule{Op: o.op, Rate: 1}); r.check() != nil {
			t.Errorf("%s: %v, want r.check() = nil", o.op, r.check())
		}
		kit.Check(t, o.serve != nil && (o.host == storeHost) != strings.HasPrefix(o.path, "/"), "row %+v", o)
		if o.host == storeHost || o.op == "extract-fetch" || o.op == "token" || o.op == "unknown" { // files of extracts are fetched from a host of their own
			continue
		}
		path := strings.NewReplacer("{vault}", "V1", "{bumId}", "x").Replace(o.path)
		kit.Want(t, o.op+" without credentials: status", w.call(o.method, path, "", "Authorization:").status, 401)
		stranger := asClerk
		if o.op == "pdf-register" {
			stranger = basicHeader("user", "s3=cret/+")
		}
		if a := w.call(o.method, path, "", stranger); a.status != 403 {
			t.Errorf("%s with the other service's credentials: status %d", o.op, a.status)
		}
	}
}

// On one host, what lies under the store's path is the store's, also where it is not a clean path.
func TestOneHost_UncleanPath(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.StoreURL = nil })
	srv := httptest.NewServer(w.Server)
	defer srv.Close()
	for path, status := range map[string]int{"/packages/V1//x.zip": 403, "/packages/V1/../x.pdf": 403, "/packages/": 403, "/v1//vaults": 502, "/v2//pdf/invoiceUpload": 502} {
		req := w.request("PUT", srv.URL+path, "x")
		kit.Want(t, path+": status", wireSend(t, req).status, status)
	}
}
