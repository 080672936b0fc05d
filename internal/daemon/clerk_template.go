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
	sidecar, help := packager.MakeTemplate(c.drop.Settings.Rules)
	err := f.WriteTemplate(drop.NoteFile{Name: c.sidecar(), Data: sidecar}, drop.NoteFile{Name: "_HELP.txt", Data: []byte(help)})
	if err != nil {
		c.d.cfg.Log.Warn("template for people not written", "drop", c.drop.Settings.Name, "err", err)
	}
}

// sidecar is the name that people give to it.
func (c *clerk) sidecar() string {
	if name := c.drop.Settings.Rules.Sidecar; name != "" {
		return name
	}
	return "metadata.json"
}
