package main

import (
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"vaultd/internal/sanitize"
)

// notifier tells the service manager how vaultd stands. Without one it does nothing.
type notifier struct {
	log *slog.Logger
}

// tell sends lines to the service manager. A failure is logged and changes nothing: the work
// does not depend on who looks on. The environment is kept, for what is told later.
func (n notifier) tell(lines string) {
	if _, err := sd.SdNotify(false, lines); err != nil {
		n.log.Warn("service manager not reached", "err", err)
	}
}

func (n notifier) ready(status string) {
	n.tell(sd.SdNotifyReady + "\nSTATUS=" + sanitize.Text(status))
}
func (n notifier) status(text string) { n.tell("STATUS=" + sanitize.Text(text)) }
func (n notifier) reloading()         { n.tell(sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec()) }
func (n notifier) stopping()          { n.tell(sd.SdNotifyStopping) }
func (n notifier) alive()             { n.tell(sd.SdNotifyWatchdog) }

// watchdog returns after which silence the service manager starts vaultd anew; 0: never.
func (n notifier) watchdog() time.Duration {
	after, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("watchdog not understood", "err", err)
	}
	return after
}
