package daemon

import (
	"vaultd/internal/drop"
	"vaultd/internal/packager"
)

// template looks after _template once each time the drop folder was opened: what people copy and fill in.
func (c *clerk) template(f *drop.Folder) {
	if c.formIn == f {
		return
	}
	c.formIn = f
	sidecar, help := packager.MakeTemplate(c.r.cfg.Rules)
	err := f.WriteTemplate(drop.NoteFile{Name: c.sidecar(), Data: sidecar}, drop.NoteFile{Name: "_HELP.txt", Data: []byte(help)})
	if err != nil {
		c.r.d.cfg.Log.Warn("template for people not written", "drop", c.r.cfg.Name, "err", err)
	}
}

// sidecar is the name that people give to it.
func (c *clerk) sidecar() string {
	if name := c.r.cfg.Rules.Sidecar; name != "" {
		return name
	}
	return "metadata.json"
}
