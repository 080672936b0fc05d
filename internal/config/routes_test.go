package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

const goodPDF = "pdf: {base_url: 'https://ap.acme.example/', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n"

// withPDF puts a drop of single PDFs into the small configuration, with a section before it.
func withPDF(section, drop string) string {
	return strings.Replace(smallConfig, "drops:", section+"drops:", 1) + "  - {name: scans, path: /srv/scans" + drop + "}\n"
}

const goodDrop = ", route: pdf, receiving: ap@in.example, notify: clerk@acme.example"

func TestConfig_PDFRoute(t *testing.T) {
	text := withPDF(goodPDF, goodDrop+", settle: 1m, group: scans, same_pdf: send") + "  - {name: more, path: /srv/more" + goodDrop + "}\n"
	cfg := mustLoad(t, text)
	d := cfg.Drops[1]
	if cfg.Drops[0].Route != RouteVault || d.Route != RoutePDF || d.Receiving != "ap@in.example" || d.Notify != "clerk@acme.example" || d.SamePDF != "send" || cfg.Drops[2].SamePDF != "return" {
		t.Errorf(`%+v, want cfg.Drops[0].Route = %v, d.Route = %v, d.Receiving = "ap@in.example", d.Notify = "clerk@acme.example", d.SamePDF = "send", cfg.Drops[2].SamePDF = "return"`, cfg.Drops, RouteVault, RoutePDF)
	}
	if p := cfg.PDF; p.BaseURL != "https://ap.acme.example" || p.Path != "/v2/pdf/invoiceUpload" || p.Auth.SecretFile != "/etc/vaultd/secret-pdf" || p.Workers != 2 || p.MaxSize != 100_000_000 || p.RepeatPut {
		t.Errorf(`%+v, want p.BaseURL = "https://ap.acme.example", p.Path = "/v2/pdf/invoiceUpload", p.Auth.SecretFile = "/etc/vaultd/secret-pdf", p.Workers = 2, p.MaxSize = 100_000_000, not p.RepeatPut`, p)
	}
	i := slices.IndexFunc(cfg.Settings, func(s Setting) bool { return s.Key == "pdf.auth.username" })
	kit.Check(t, i >= 0 && cfg.Settings[i].Value == hidden, "who signs in is shown: %+v", cfg.Settings)
}

// A key that says nothing, because it is written with its default, is no fault: the example shows every key.
func TestConfig_DefaultsOfTheOtherRouteSayNothing(t *testing.T) {
	mustLoad(t, withPDF(goodPDF, goodDrop+", vault: '', sidecar: metadata.json, defaults: {}, retention: ''"))
	mustLoad(t, strings.Replace(smallConfig, "vault: V-1", "vault: V-1, route: vault, receiving: '', same_pdf: return", 1))
}

func TestConfig_RouteFaults(t *testing.T) {
	type row struct {
		section, drop string
		want          []string
	}
	kit.Rows(t, map[string]row{
		"NoRoute":       {goodPDF, "", []string{"7:5 drops[1].vault: is missing; add vault: the vault's id, as the service names it; or write route: pdf, for single PDFs"}},
		"WrongRoute":    {goodPDF, ", route: pfd", []string{"7:44 drops[1].route: is none of the words that are known here; did you mean pdf? It is vault, pdf or network"}},
		"NoBaseURL":     {"", goodDrop, []string{"6:44 drops[1].route: is pdf, and pdf.base_url is missing; add a section pdf with base_url and auth"}},
		"NoReceiving":   {goodPDF, ", route: pdf, notify: a@b.example", []string{"7:5 drops[1].receiving: is missing; add receiving: *"}},
		"NoNotify":      {goodPDF, ", route: pdf, receiving: a@b.example", []string{"7:5 drops[1].notify: is missing; add notify: *"}},
		"NoAddress":     {goodPDF, ", route: pdf, receiving: ap.in.example, notify: 'a b@c.example'", []string{"7:60 drops[1].receiving: is not the e-mail address of the PDF flow, *", "7:83 drops[1].notify: is not the e-mail address *"}},
		"HeaderInside":  {goodPDF, ", route: pdf, receiving: \"a@b.example\\r\\nBcc: c@d.example\", notify: a@b.example", []string{"7:60 drops[1].receiving: is not the e-mail address *"}},
		"VaultToo":      {goodPDF, goodDrop + ", vault: V-1", []string{"7:110 drops[1].vault: belongs to route: vault; remove vault, or write route: vault"}},
		"SidecarToo":    {goodPDF, goodDrop + ", sidecar: a.json", []string{"7:112 drops[1].sidecar: belongs to route: vault; remove sidecar, *"}},
		"DefaultsToo":   {goodPDF, goodDrop + ", defaults: {senderName: x}", []string{"7:103 drops[1].defaults: belongs to route: vault; *"}},
		"HoldToo":       {goodPDF, goodDrop + ", same_content: hold", []string{"7:117 drops[1].same_content: belongs to route: vault; *"}},
		"ReceivingToo":  {goodPDF, ", vault: V-2, receiving: a@b.example", []string{"7:60 drops[1].receiving: belongs to route: pdf; remove receiving, or write route: pdf"}},
		"SamePDFToo":    {goodPDF, ", vault: V-2, same_pdf: send", []string{"7:59 drops[1].same_pdf: belongs to route: pdf; *"}},
		"NoAuth":        {"pdf: {base_url: 'https://ap.acme.example'}\n", goodDrop, []string{"4:1 pdf.auth: is missing, and base_url is there; add auth: *"}},
		"HalfAuth":      {"pdf: {base_url: 'https://ap.acme.example', auth: {method: basic}}\n", goodDrop, []string{"4:44 pdf.auth.secret_file: is missing; *", "4:44 pdf.auth.username: is missing; *"}},
		"ScopeKnown":    {strings.Replace(goodPDF, "basic", "oauth2", 1), goodDrop, nil},
		"Secret":        {strings.Replace(goodPDF, "/etc/vaultd/secret-pdf", "S3cr3t-canary", 1), goodDrop, []string{"4:93 pdf.auth.secret_file: is not the absolute path *"}},
		"PlainHTTP":     {strings.Replace(goodPDF, "https", "http", 1), goodDrop, []string{"4:17 pdf.base_url: is plain http to another machine; *"}},
		"Example":       {strings.Replace(goodPDF, "ap.acme.example", "ap.example", 1), goodDrop, []string{"4:17 pdf.base_url: is the address of an example; *"}},
		"VersionTwice":  {strings.Replace(goodPDF, "example/", "example/v2/", 1), goodDrop, []string{"4:17 pdf.base_url: ends with v2, which is in pdf.path too; write https://ap.acme.example"}},
		"Path":          {strings.Replace(goodPDF, "pdf: {", "pdf: {path: /v2/upload, ", 1), goodDrop, []string{"4:13 pdf.path: is not the path of the call, *"}},
		"PathWithQuery": {strings.Replace(goodPDF, "pdf: {", "pdf: {path: '/v2/pdf/invoiceUpload?x', ", 1), goodDrop, []string{"4:13 pdf.path: is not the path of the call, *"}},
		"NoSize":        {strings.Replace(goodPDF, "pdf: {", "pdf: {max_size: 0MB, ", 1), goodDrop, []string{"4:17 pdf.max_size: is zero; *"}},
		"LargeSize":     {strings.Replace(goodPDF, "pdf: {", "pdf: {max_size: 30GB, ", 1), goodDrop, []string{"4:17 pdf.max_size: is more than spool.max, *"}},
		"Workers":       {strings.Replace(goodPDF, "pdf: {", "pdf: {workers: 17, ", 1), goodDrop, []string{"4:16 pdf.workers: is out of range; *"}},
		"UnknownKey":    {strings.Replace(goodPDF, "pdf: {", "pdf: {repeat: true, ", 1), goodDrop, []string{"4:7 pdf.repeat: is not a known key; *"}},
		"SamePlace":     {goodPDF, goodDrop + "}\n  - {name: other, path: /srv/scans" + goodDrop, []string{"8:25 drops[2].path: overlaps with drop \"scans\"; *"}},
	}, func(t *testing.T, row row) {
		_, faults := load(t, withPDF(row.section, row.drop), nil)
		wantFaults(t, faults, row.want)
		kit.Lacks(t, "the text", (&Error{Faults: faults}).Error(), "S3cr3t-canary")
	})
}

// I27: the secret of the PDF flow is asked for where it is used, and nowhere else.
func TestConfig_I27_SecretOfThePDFFlow(t *testing.T) {
	for name, row := range map[string]struct {
		section string
		want    bool
	}{"Used": {strings.Replace(goodPDF, "/etc/vaultd/secret-pdf", "/nowhere/secret-pdf", 1), true}, "NotUsed": {"pdf: {auth: {method: basic, username: p, secret_file: /nowhere/secret-pdf}}\n", false}} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, strings.Replace(smallConfig, "drops:", row.section+"drops:", 1))
			err := cfg.CheckMachine(noEnv)
			wrong, _ := errors.AsType[*Error](err)
			found := wrong != nil && slices.ContainsFunc(wrong.Faults, func(f Fault) bool {
				return f.Key == "pdf.auth.secret_file" && errors.Is(f.Err, fs.ErrNotExist)
			})
			kit.Check(t, found == row.want, "%v, want found = %v", err, row.want)
		})
	}
}
