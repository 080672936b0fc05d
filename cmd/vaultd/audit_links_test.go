package main

import (
	"testing"

	"vaultd/internal/config"
)

// A page links to a receipt only where whoever opens the page there sees the receipt, too, on this machine and over a share.
func TestAudit_LinksThatWork(t *testing.T) {
	v := view{}
	v.cfg.Drops = []config.Drop{{Name: "acme-in", Path: "/srv/invoices/acme-in"}, {Name: "beta-in", Path: "/srv/other/beta-in"}}
	const receipt = "_archived/2026-11/Müller 4711/_RECEIPT.txt"
	for _, row := range []struct{ beside, drop, receipt, want string }{
		{"/srv/invoices/acme-in", "acme-in", receipt, "./_archived/2026-11/M%C3%BCller%204711/_RECEIPT.txt"},
		{"/srv/invoices/acme-in/_archived", "acme-in", receipt, "../_archived/2026-11/M%C3%BCller%204711/_RECEIPT.txt"},
		{"/srv/invoices", "acme-in", receipt, "./acme-in/_archived/2026-11/M%C3%BCller%204711/_RECEIPT.txt"},
		{"/srv/invoices", "beta-in", receipt, ""},
		{"/home/anna", "acme-in", receipt, ""},
		{"/srv/invoices/acme-in-2", "acme-in", receipt, ""},
		{"/srv/invoices", "gone-in", receipt, ""},
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/a#b?c%d\"e/_RECEIPT.txt", ""}, // not a name on Windows
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/a#b%d&'e/_RECEIPT.txt", "./_archived/2026-11/a%23b%25d&%27e/_RECEIPT.txt"},
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/javascript:x/_RECEIPT.txt", ""},
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/Otto. /_RECEIPT.txt", ""},
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/a\xff/_RECEIPT.txt", ""},
		{"/srv/invoices/acme-in", "acme-in", "_archived/2026-11/a\u202eb/_RECEIPT.txt", ""},
	} {
		if got := v.receiptLinks(row.beside)(row.drop, row.receipt); got != row.want {
			t.Errorf("from %s to %s in %s: %q, want %q", row.beside, row.receipt, row.drop, got, row.want)
		}
	}
	if v.receiptLinks("") != nil {
		t.Error("links though nobody knows where the page will lie")
	}
}
