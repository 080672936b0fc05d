package dropwork

import (
	"context"

	"vaultd/internal/archive"
)

// PutFolder puts a folder into the drop folder, from where it is taken like one that people dropped. It fails while the drop folder is away, is another
// vaultd's, or cannot be written. The same call may be made again.
func (d *Drop) PutFolder(ctx context.Context, in archive.DropFolder) error {
	if err := d.CheckUsable(); err != nil {
		return err
	}
	f, done, err := d.HoldOpen()
	if err != nil {
		return err
	}
	defer done()
	in.SidecarName = d.Settings.Rules.Sidecar
	// A crash here leaves the folder out of sight, or in its place; the next call makes both good.
	if _, err := f.PutFolder(ctx, in); err != nil {
		return err
	}
	d.RequestRescan()
	return nil
}
