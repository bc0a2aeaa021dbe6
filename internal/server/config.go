package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"chancery/internal/base/conf"
	"chancery/internal/base/fault"
	"chancery/internal/base/name"
)

// FileName is the configuration file in the data directory. It may be absent.
const FileName = "chancery.json"

// A Config is everything that an operator can set. The values in Defaults are what a fresh installation runs with.
type Config struct {
	Data   string       // the data directory; not a setting, since the file lies in it
	Device Device       `conf:"device" doc:"kind of machine: low_mem, default or high_throughput; sets what is not set otherwise"`
	Name   Name         `conf:"name"`
	Store  Store        `conf:"store"`
	Keys   Keys         `conf:"keys"`
	Listen Listen       `conf:"listen"`
	Limit  Limit        `conf:"limit"`
	Agent  AgentLimits  `conf:"agent"`
	Status StatusConfig `conf:"status"`
	Log    LogConfig    `conf:"log"`
}

// Name says what the installation is called, in certificates and by its clients.
type Name struct {
	Hosts       []string `conf:"hosts" doc:"host names and addresses in the server's own certificate"`
	TrustDomain string   `conf:"trust_domain" doc:"full DNS name of the realm of people and agents; SPIFFE ids are spiffe://trust_domain/agent/ID"`
	PublicURL   string   `conf:"public_url" doc:"where relying parties fetch CRLs and ask OCSP; it stands in certificates. Empty leaves those addresses out"`
}

// Store says where everything is kept.
type Store struct {
	URL    conf.URL  `conf:"url" doc:"sqlite:FILE, postgres://… or mysql://…; default: chancery.db in the data directory"`
	Cache  conf.Size `conf:"cache" doc:"memory for pages of a SQLite database, all connections together; database servers have their own"`
	Accept []string  `conf:"accept" doc:"durability settings, by name, that are accepted although an acknowledged write may be lost"`
}

// Keys says how the keyring is opened.
type Keys struct {
	PassphraseFile string      `conf:"passphrase_file" doc:"file with the passphrase that seals private keys; default: passphrase in the data directory, if it is there"`
	Passphrase     conf.Secret `conf:"passphrase" doc:"the passphrase itself; meant for the environment, not for the file"`
}

// Listen holds the addresses of the listeners, host:port each. An empty one is not listened on.
type Listen struct {
	HTTPS    string `conf:"https" doc:"API over TLS; never asks for a client certificate"`
	MTLS     string `conf:"mtls" doc:"API over TLS with client certificates"`
	Loopback string `conf:"loopback" doc:"API over plain HTTP, on a loopback address only"`
	Public   string `conf:"public" doc:"OCSP, CRLs and authorities' certificates over plain HTTP"`
	Private  string `conf:"private" doc:"metrics and profiles over plain HTTP; keep it private"`
	Socket   string `conf:"socket" doc:"admin socket; default: admin.sock in the data directory"`
	Profiles bool   `conf:"profiles" doc:"serve pprof with block and mutex profiles on the private listener"`
}

// Limit holds what the server bears before it refuses.
type Limit struct {
	Connections int           `conf:"connections" doc:"open connections"`
	Memory      conf.Size     `conf:"memory" doc:"estimated memory of all admitted requests"`
	Process     conf.Size     `conf:"process" doc:"memory of the whole process, kept to by collecting garbage more often; 0B for four fifths of what the control group allows"`
	Garbage     int           `conf:"garbage" doc:"how much the heap grows before garbage is collected, in per cent of what lives, and by 256 MB beside a large heap; GOGC wins"`
	Wait        conf.Duration `conf:"wait" doc:"longest expected wait of an admitted request; longer is refused with Retry-After"`
	Rate        int           `conf:"rate" doc:"most admitted requests a second; 0 for no limit but the wait"`
	Anonymous   int           `conf:"anonymous" doc:"requests a second from one address without credentials; 0 for no limit"`
}

// AgentLimits holds what bounds agents.
type AgentLimits struct {
	Lifetime   conf.Duration `conf:"lifetime" doc:"longest validity of an agent certificate, at most 1d"`
	Skew       conf.Duration `conf:"skew" doc:"how far the time of a delegation authorization may be off, at most 1m"`
	Invitation conf.Duration `conf:"invitation" doc:"validity of an enrolment token"`
}

// StatusConfig says how long status answers hold.
type StatusConfig struct {
	CRL  conf.Duration `conf:"crl" doc:"from thisUpdate to nextUpdate of a CRL"`
	OCSP conf.Duration `conf:"ocsp" doc:"the same of an OCSP answer about certificates that are not agents'"`
}

// LogConfig says what is logged.
type LogConfig struct {
	Level  string `conf:"level" doc:"debug, info, warn or error"`
	Format string `conf:"format" doc:"text or json"`
}

// Defaults gives the configuration of a fresh installation in a data directory.
func Defaults(data string) Config {
	return Config{
		Data:   data,
		Device: DefaultDevice,
		Store:  Store{Cache: 32 << 20},
		Name:   Name{Hosts: []string{"localhost", "127.0.0.1", "::1"}, TrustDomain: "chancery.internal", PublicURL: "http://localhost:8080"},
		Listen: Listen{HTTPS: ":8443", MTLS: ":8444", Loopback: "127.0.0.1:8080"},
		Limit:  Limit{Connections: 16384, Memory: 128 << 20, Garbage: 400, Wait: conf.Duration(2 * time.Second)},
		Agent:  AgentLimits{Lifetime: conf.Duration(time.Hour), Skew: conf.Duration(30 * time.Second), Invitation: conf.Duration(time.Hour)},
		Status: StatusConfig{CRL: conf.Duration(24 * time.Hour), OCSP: conf.Duration(time.Hour)},
		Log:    LogConfig{Level: "info", Format: "text"},
	}
}

// Configure lays the device's preset, the file of the data directory, the environment and flags over the defaults, and
// gives the result with the origin of every value. What is not understood is refused, all of it at once.
func Configure(data string, environ []string, flags map[string]string) (Config, []conf.Setting, error) {
	c := Defaults(data)
	file, err := os.ReadFile(filepath.Join(data, FileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, nil, fmt.Errorf("read the configuration: %w", err)
	}
	sources := conf.Sources{FileName: FileName, File: file, Environ: environ, Flags: flags}
	if _, err := conf.Load(&c, sources); err != nil { // which says the device
		return c, nil, err
	}
	sources.Preset, sources.PresetOf = devices[c.Device], "device "+string(c.Device)
	c = Defaults(data)
	settings, err := conf.Load(&c, sources)
	if err != nil {
		return c, nil, err
	}
	return c, settings, c.check()
}

func (n Name) parse() (hosts []name.Name, err error) {
	for _, text := range n.Hosts {
		host, err := name.Parse(text)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// check refuses values that are understood and cannot be used, before anything is opened. It looks at the configuration
// alone: whether a port is free, or a database answers, is seen at the start.
func (c Config) check() error {
	return cmp.Or(c.Name.check(), c.Store.check(), c.Listen.check(), c.Limit.check(), c.Agent.check(), c.Log.check())
}

func unusable(format string, args ...any) error {
	return fault.New(fault.Invalid, "config_invalid", format, args...)
}

func (n Name) check() error {
	if _, err := n.parse(); err != nil {
		return fmt.Errorf("name.hosts: %w", err)
	}
	if _, err := name.Of(name.DNS, n.TrustDomain); err != nil {
		return unusable("name.trust_domain is %q; it is a full DNS name, such as example.org", n.TrustDomain)
	}
	if n.PublicURL == "" {
		return nil
	}
	if u, err := url.Parse(n.PublicURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return unusable("name.public_url is %q; it is an address such as http://ca.example.org", n.PublicURL)
	}
	return nil
}

func (s Store) check() error {
	if s.Cache < 1<<20 {
		return unusable("store.cache is %v; it is 1MB at least", s.Cache)
	}
	return nil
}

func (l Listen) check() error {
	for _, one := range [][2]string{{"https", l.HTTPS}, {"mtls", l.MTLS}, {"loopback", l.Loopback}, {"public", l.Public}, {"private", l.Private}} {
		if one[1] == "" {
			continue
		}
		_, port, err := net.SplitHostPort(one[1])
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
			return unusable("listen.%s is %q; it is host:port, or :port for every address of this machine", one[0], one[1])
		}
	}
	return nil
}

func (l Limit) check() error {
	if l.Garbage < 1 {
		return unusable("limit.garbage is %d; it is 1 per cent at least", l.Garbage)
	}
	if l.Connections < 1 || l.Rate < 0 || l.Anonymous < 0 {
		return unusable("limit.connections is %d, limit.rate %d and limit.anonymous %d; connections are at least 1, the others not negative", l.Connections, l.Rate, l.Anonymous)
	}
	return nil
}

func (a AgentLimits) check() error {
	if a.Lifetime > conf.Duration(24*time.Hour) {
		return unusable("agent.lifetime is %v; agent certificates live a day at most", a.Lifetime)
	}
	if a.Skew > conf.Duration(time.Minute) { // services allow so much, and used evidence is kept for a day
		return unusable("agent.skew is %v; services refuse certificates whose authorization is more than a minute off", a.Skew)
	}
	return nil
}

func (l LogConfig) check() error {
	if l.Format != "text" && l.Format != "json" {
		return unusable("log.format is %q; it is text or json", l.Format)
	}
	if err := new(slog.Level).UnmarshalText([]byte(l.Level)); err != nil {
		return unusable("log.level is %q; it is debug, info, warn or error", l.Level)
	}
	return nil
}

func (c Config) storeURL() string {
	return cmp.Or(c.Store.URL.Reveal(), "sqlite:"+filepath.Join(c.Data, "chancery.db"))
}

// SocketPath is where the admin socket of a data directory lies.
func (c Config) SocketPath() string {
	return cmp.Or(c.Listen.Socket, filepath.Join(c.Data, "admin.sock"))
}

// PassphrasePath is where the passphrase of a data directory lies, unless it is kept elsewhere.
func (c Config) PassphrasePath() string {
	return cmp.Or(c.Keys.PassphraseFile, filepath.Join(c.Data, "passphrase"))
}
