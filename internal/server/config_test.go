package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/server"
)

func TestConfigurationIsHeldToItsBounds(t *testing.T) {
	t.Parallel()
	for setting, code := range map[string]string{
		"CHANCERY_AGENT_LIFETIME=24h": "", "CHANCERY_AGENT_LIFETIME=25h": "config_invalid",
		"CHANCERY_AGENT_SKEW=1m": "", "CHANCERY_AGENT_SKEW=61s": "config_invalid",
		"CHANCERY_NAME_HOSTS=two words": "name_invalid", "CHANCERY_NAME_HOSTS=ca.example.org,10.0.0.1": "",
		"CHANCERY_NAME_TRUST_DOMAIN=example.org": "", "CHANCERY_NAME_TRUST_DOMAIN=ex ample": "config_invalid",
		"CHANCERY_NAME_PUBLIC_URL=": "", "CHANCERY_NAME_PUBLIC_URL=http://ca.example.org/x": "", "CHANCERY_NAME_PUBLIC_URL=ca.example.org": "config_invalid",
		"CHANCERY_LISTEN_HTTPS=:0": "", "CHANCERY_LISTEN_HTTPS=[::1]:8443": "", "CHANCERY_LISTEN_HTTPS=8443": "config_invalid", "CHANCERY_LISTEN_MTLS=:84440": "config_invalid",
		"CHANCERY_LISTEN_PUBLIC=": "", "CHANCERY_LIMIT_CONNECTIONS=0": "config_invalid", "CHANCERY_LIMIT_RATE=-1": "config_invalid",
		"CHANCERY_LIMIT_GARBAGE=0": "config_invalid", "CHANCERY_STORE_CACHE=1KB": "config_invalid", "CHANCERY_STORE_CACHE=1MiB": "",
		"CHANCERY_LOG_LEVEL=debug": "", "CHANCERY_LOG_LEVEL=loud": "config_invalid",
		"CHANCERY_LOG_FORMAT=json": "", "CHANCERY_LOG_FORMAT=xml": "config_invalid",
	} {
		if _, _, err := server.Configure(t.TempDir(), []string{setting}, nil); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", setting, err, code)
		}
	}
}

// TestDeviceSetsWhatNobodySet lays every device under each of the other origins.
func TestDeviceSetsWhatNobodySet(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := "{\n\"device\": \"low_mem\",\n\"limit\": {\"memory\": \"1MB\"},\n}"
	if err := os.WriteFile(filepath.Join(data, server.FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, settings, err := server.Configure(data, []string{"CHANCERY_LIMIT_CONNECTIONS=7"}, map[string]string{"limit.process": "1GB"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range settings {
		got[s.Name] = s.Value + " from " + s.Origin
	}
	for name, want := range map[string]string{
		"device": "low_mem from chancery.json:2", "limit.memory": "1MB from chancery.json:3", "store.cache": "16MiB from device low_mem",
		"limit.connections": "7 from environment CHANCERY_LIMIT_CONNECTIONS", "limit.process": "1GB from flag --limit.process", "limit.wait": "2s from default",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if c.Store.Cache != 16<<20 {
		t.Errorf("store.cache is %v", c.Store.Cache)
	}
	for _, device := range []string{"low_mem", "default", "high_throughput"} {
		if _, _, err := server.Configure(t.TempDir(), nil, map[string]string{"device": device}); err != nil {
			t.Errorf("device %s: %v", device, err)
		}
	}
	if _, _, err := server.Configure(t.TempDir(), nil, map[string]string{"device": "toaster"}); err == nil || !strings.Contains(err.Error(), "low_mem") {
		t.Errorf("an unknown device: %v", err)
	}
}
