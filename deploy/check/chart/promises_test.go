package chart

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
)

// podOf is the pod template of a workload, nil for other kinds.
func podOf(r rendered) map[string]any {
	if !slices.Contains([]string{"StatefulSet", "Deployment", "Job"}, r.kind()) {
		return nil
	}
	return at(r.object, "spec", "template").(map[string]any)
}

func container(r rendered) any { return at(podOf(r), "spec", "containers", 0) }

// env is what a container is given, and fails the caller's comparison where a name comes twice.
func env(r rendered) map[string]string {
	list, _ := at(container(r), "env").([]any)
	all := map[string]string{}
	for _, e := range list {
		name := at(e, "name").(string)
		if _, twice := all[name]; twice {
			name += " twice"
		}
		value, _ := at(e, "value").(string)
		all[name] = value
	}
	return all
}

// pods goes through every pod of every case.
func pods(t *testing.T, check func(t *testing.T, r rendered, spec map[string]any)) {
	t.Helper()
	for _, name := range cases {
		n := 0
		for id, r := range mustRender(t, name) {
			if pod := podOf(r); pod != nil {
				n++
				t.Run(name+"/"+id, func(t *testing.T) { check(t, r, pod["spec"].(map[string]any)) })
			}
		}
		if n < 3 {
			t.Errorf("%s has only %d pods", name, n)
		}
	}
}

func want(t *testing.T, object any, value any, path ...any) {
	t.Helper()
	if got := at(object, path...); !reflect.DeepEqual(got, value) {
		t.Errorf("%v is %v, want %v", path, got, value)
	}
}

func TestPods_LeastRights(t *testing.T) {
	t.Parallel()
	pods(t, func(t *testing.T, r rendered, spec map[string]any) {
		want(t, spec, false, "automountServiceAccountToken")
		want(t, spec, false, "enableServiceLinks")
		want(t, spec, true, "securityContext", "runAsNonRoot")
		want(t, spec, float64(65532), "securityContext", "runAsUser")
		want(t, spec, float64(65532), "securityContext", "fsGroup")
		want(t, spec, "RuntimeDefault", "securityContext", "seccompProfile", "type")
		c := container(r)
		want(t, c, false, "securityContext", "allowPrivilegeEscalation")
		want(t, c, true, "securityContext", "readOnlyRootFilesystem")
		want(t, c, []any{"ALL"}, "securityContext", "capabilities", "drop")
		want(t, c, nil, "securityContext", "capabilities", "add")
		for _, no := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			want(t, spec, nil, no)
		}
		if at(c, "resources", "limits", "memory") == nil || at(c, "resources", "requests", "cpu") == nil {
			t.Error("no limit of memory or no request of CPU")
		}
		if n := len(at(spec, "containers").([]any)); n != 1 {
			t.Errorf("%d containers, and one was looked at", n)
		}
	})
}

var secretLike = regexp.MustCompile(`(?i)(password|secret|token|://[^/ ]*@)`)

func TestPods_SecretsAreFiles(t *testing.T) {
	t.Parallel()
	pods(t, func(t *testing.T, r rendered, spec map[string]any) {
		mounts := map[string]string{}
		for _, m := range at(container(r), "volumeMounts").([]any) {
			want(t, m, nil, "subPath")
			mounts[at(m, "mountPath").(string)] = at(m, "name").(string)
		}
		volumes := map[string]any{}
		for _, v := range at(spec, "volumes").([]any) {
			volumes[at(v, "name").(string)] = v
		}
		for name, value := range env(r) {
			isFile := strings.HasSuffix(name, "_FILE")
			if strings.Contains(name, "twice") || (!isFile && (secretLike.MatchString(value) || strings.HasSuffix(name, "_PASSWORD") || name == "DOCKET_DATABASE_URL")) {
				t.Errorf("%s=%s", name, value)
			}
			if !strings.HasPrefix(value, "/etc/docket/") {
				continue
			}
			dir := value[:strings.LastIndex(value, "/")]
			if secret := at(volumes[mounts[dir]], "secret", "secretName"); secret == nil {
				t.Errorf("%s names %s, which no Secret is mounted for", name, value)
			}
		}
		none := at(container(r), "name") == "collector"
		if database := env(r)["DOCKET_DATABASE_URL_FILE"]; (database == "") != none || (volumes["database"] == nil) != none {
			t.Errorf("the database is %q, and it wants none: %v", database, none)
		}
	})
}

func TestPods_GracePeriod(t *testing.T) {
	t.Parallel()
	pods(t, func(t *testing.T, r rendered, spec map[string]any) {
		if r.kind() == "Job" {
			return
		}
		timeout, err := time.ParseDuration(env(r)["DOCKET_SHUTDOWN_TIMEOUT"])
		grace, _ := at(spec, "terminationGracePeriodSeconds").(float64)
		// The program ends 5 s after the timeout at the latest.
		if err != nil || grace < timeout.Seconds()+5+5 {
			t.Errorf("%v s for a stop that may take %v (%v)", grace, timeout, err)
		}
	})
}

func TestPods_Probes(t *testing.T) {
	t.Parallel()
	pods(t, func(t *testing.T, r rendered, spec map[string]any) {
		if r.kind() == "Job" {
			return
		}
		c := container(r)
		want(t, c, "/healthz", "livenessProbe", "httpGet", "path")
		want(t, c, "/healthz", "startupProbe", "httpGet", "path")
		want(t, c, "/readyz", "readinessProbe", "httpGet", "path")
		for _, probe := range []string{"livenessProbe", "startupProbe", "readinessProbe"} {
			want(t, c, "http", probe, "httpGet", "port")
		}
		want(t, c, "http", "ports", 0, "name")
		want(t, c, float64(8080), "ports", 0, "containerPort")
		want(t, env(r)["DOCKET_HTTP_ADDR"], ":8080")
		// Longer than the program's own patience (42 s at the defaults), so that its last words are logged.
		period, _ := at(c, "livenessProbe", "periodSeconds").(float64)
		times, _ := at(c, "livenessProbe", "failureThreshold").(float64)
		if period*times < 60 {
			t.Errorf("liveness gives up after %v s", period*times)
		}
	})
}

// A pod that holds is not ready by design, so nothing may wait until all are ready.
func TestPods_HoldBlocksNoRollout(t *testing.T) {
	t.Parallel()
	for _, name := range cases {
		budgets := 0
		for id, r := range mustRender(t, name) {
			spec := r.object["spec"]
			switch r.kind() {
			case "StatefulSet":
				want(t, spec, "Parallel", "podManagementPolicy")
				want(t, spec, map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"}, "persistentVolumeClaimRetentionPolicy")
			case "Deployment":
				want(t, spec, float64(1), "strategy", "rollingUpdate", "maxUnavailable")
				surge := 0
				if strings.HasSuffix(id, "-collector") {
					surge = 1 // it shares nothing out
				}
				want(t, spec, float64(surge), "strategy", "rollingUpdate", "maxSurge")
			case "PodDisruptionBudget":
				budgets++
				want(t, spec, "AlwaysAllow", "unhealthyPodEvictionPolicy")
				want(t, spec, float64(1), "maxUnavailable")
			case "Service":
				if !strings.HasSuffix(id, "-api") && !strings.HasSuffix(id, "-uploads") && !strings.HasSuffix(id, "-peers") {
					want(t, spec, true, "publishNotReadyAddresses")
				}
			}
		}
		wanted := 3
		if name == "everything" {
			wanted = 4 // with the collector
		}
		if budgets != wanted {
			t.Errorf("%s: %d budgets", name, budgets)
		}
	}
}

func TestSpool_VolumeForEachPodOrOff(t *testing.T) {
	t.Parallel()
	for _, name := range cases {
		objects := mustRender(t, name)
		for _, worker := range []string{"consumer", "replayer"} {
			if name == "nospool" {
				r, ok := objects["Deployment/docket-"+worker]
				if dir, set := env(r)["DOCKET_SPOOL_DIR"]; !ok || !set || dir != "" {
					t.Errorf("%s %s: DOCKET_SPOOL_DIR=%q %v; a path, or the default, is not lasting", name, worker, dir, set)
				}
				continue
			}
			r := objects["StatefulSet/docket-"+worker]
			want(t, r.object, "docket-"+worker, "spec", "serviceName")
			if _, ok := objects["Service/docket-"+worker]; !ok {
				t.Errorf("%s: no Service docket-%s", name, worker)
			}
			claim := at(r.object, "spec", "volumeClaimTemplates", 0)
			mounted := ""
			for _, m := range at(container(r), "volumeMounts").([]any) {
				if at(m, "name") == at(claim, "metadata", "name") {
					mounted = at(m, "mountPath").(string)
				}
			}
			// Below the mount: its root has lost+found, and modes of fsGroup.
			if dir := env(r)["DOCKET_SPOOL_DIR"]; mounted == "" || !strings.HasPrefix(dir, mounted+"/") {
				t.Errorf("%s %s: the spool is at %q, the claim at %q", name, worker, dir, mounted)
			}
		}
	}
}

// Fields that cannot be changed on an existing workload must not follow versions or values.
func TestUpgrade_KeepsImmutableFields(t *testing.T) {
	t.Parallel()
	fixed := func(objects map[string]rendered) map[string]string {
		all := map[string]string{}
		for id, r := range objects {
			if r.kind() == "StatefulSet" || r.kind() == "Deployment" {
				all[id] = fmt.Sprint(at(r.object, "spec", "selector"), at(r.object, "spec", "serviceName"), at(r.object, "spec", "podManagementPolicy"), at(r.object, "spec", "volumeClaimTemplates"))
			}
		}
		return all
	}
	before, _, err := render(load(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	newer := load(t)
	newer.Metadata.Version, newer.Metadata.AppVersion = "9.9.9+build.7", "v9.9.9-12-gabcdef0-dirty"
	after, _, err := render(newer, map[string]any{
		"image": map[string]any{"tag": "v9"}, "tracing": map[string]any{"endpoint": "http://o:4318"}, "settings": map[string]any{"DOCKET_LOG_LEVEL": "warn"},
		"consumer": map[string]any{"replicas": 5, "podLabels": map[string]any{"a": "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, a := fixed(before), fixed(after); !maps.Equal(b, a) || len(b) != 3 {
		t.Errorf("before %v\nafter  %v", b, a)
	}
	for id, r := range after {
		labels := at(r.object, "metadata", "labels").(map[string]any)
		if labels["app.kubernetes.io/version"] != "v9.9.9-12-gabcdef0-dirty" || labels["helm.sh/chart"] != "docket-9.9.9_build.7" {
			t.Errorf("%s: labels %v", id, labels)
		}
	}
}

func TestSelectors_FindTheirPods(t *testing.T) {
	t.Parallel()
	for _, name := range cases {
		objects := mustRender(t, name)
		for id, r := range objects {
			selector := at(r.object, "spec", "selector", "matchLabels")
			if r.kind() == "Service" {
				selector = at(r.object, "spec", "selector")
			}
			if r.kind() == "NetworkPolicy" {
				selector = at(r.object, "spec", "podSelector", "matchLabels")
			}
			if selector == nil {
				continue
			}
			found := 0
			for _, other := range objects {
				pod := podOf(other)
				if pod == nil {
					continue
				}
				labels := at(pod, "metadata", "labels").(map[string]any)
				fits := true
				for k, v := range selector.(map[string]any) {
					fits = fits && labels[k] == v
				}
				if fits {
					found++
				}
			}
			wanted := 1
			if r.kind() == "NetworkPolicy" && !strings.HasSuffix(id, "-api") && !strings.HasSuffix(id, "-uploads") && !strings.HasSuffix(id, "-peers") {
				wanted = 4 // the three and the migration
				if name == "everything" {
					wanted = 5 // and the collector
				}
			}
			if found != wanted {
				t.Errorf("%s: %s finds the pods of %d, want %d", name, id, found, wanted)
			}
		}
	}
}

func TestScaler_WorkloadAndGroup(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"nospool": "Deployment", "everything": "StatefulSet"} {
		objects := mustRender(t, name)
		scaler := objects["ScaledObject/docket-consumer"]
		want(t, scaler.object, kind, "spec", "scaleTargetRef", "kind")
		trigger := at(scaler.object, "spec", "triggers", 0, "metadata")
		want(t, trigger, "true", "limitToPartitionsWithLag")
		if name == "everything" {
			want(t, trigger, "docket-blue", "consumerGroup")
			want(t, trigger, "10000000", "lagThreshold")
			login := at(scaler.object, "spec", "triggers", 0, "authenticationRef")
			for i, lane := range []struct{ topic, group, threshold string }{
				{"decision-logs", "docket-blue", "10000000"}, {"decision-logs-urgent", "docket-blue-urgent", "5000"}, {"decision-logs-bulk", "docket-late", "10000000"},
			} {
				trigger := at(scaler.object, "spec", "triggers", i)
				want(t, trigger, lane.topic, "metadata", "topic")
				want(t, trigger, lane.group, "metadata", "consumerGroup")
				want(t, trigger, lane.threshold, "metadata", "lagThreshold")
				want(t, trigger, login, "authenticationRef")
			}
			want(t, objects["TriggerAuthentication/docket-consumer"].object, container(objects[kind+"/docket-consumer"]).(map[string]any)["name"], "spec", "env", 0, "containerName")
		}
		if n := len(at(scaler.object, "spec", "triggers").([]any)); n != map[string]int{"nospool": 1, "everything": 3}[name] {
			t.Errorf("%s: %d triggers, want one for each lane", name, n)
		}
		// Two that say how many there are would undo each other.
		want(t, objects[kind+"/docket-consumer"].object, nil, "spec", "replicas")
		want(t, objects[kind+"/docket-replayer"].object, at(objects[kind+"/docket-replayer"].object, "spec", "replicas"), "spec", "replicas")
	}
}

func TestNetworkPolicy_OnlyUsedPorts(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "nospool")
	policy := objects["NetworkPolicy/docket"]
	want(t, policy.object, []any{"Ingress", "Egress"}, "spec", "policyTypes")
	want(t, policy.object, []any{}, "spec", "ingress")
	ports := []string{}
	for _, rule := range at(policy.object, "spec", "egress").([]any) {
		for _, p := range at(rule, "ports").([]any) {
			ports = append(ports, fmt.Sprintf("%v/%v", at(p, "protocol"), at(p, "port")))
		}
	}
	if want := []string{"TCP/53", "UDP/53", "TCP/9092", "TCP/5432"}; !slices.Equal(ports, want) {
		t.Errorf("out on %v, want %v", ports, want)
	}
	all := mustRender(t, "everything")["NetworkPolicy/docket"]
	if n := len(at(all.object, "spec", "egress").([]any)); n != 6 {
		t.Errorf("%d rules out, want DNS, Kafka, Postgres, Redis, OTLP and one more", n)
	}
	want(t, all.object, "10.0.0.0/8", "spec", "egress", 1, "to", 0, "ipBlock", "cidr")
}

// TestDeskPeers_SeesTheRelease: the console sees every other program, through the network policy too. Somebody may name others
// beside or in place of them, or none.
func TestDeskPeers_SeesTheRelease(t *testing.T) {
	t.Parallel()
	peers := func(more string) any {
		t.Helper()
		v, err := chartutil.ReadValues([]byte("kafka: {brokers: [k:9092]}\ndatabase: {secretName: db}\nnetworkPolicy: {enabled: true}\n" + more))
		if err != nil {
			t.Fatal(err)
		}
		objects, _, err := render(load(t), v)
		if err != nil {
			t.Fatal(err)
		}
		var found any
		for _, env := range at(container(objects["Deployment/docket-desk"]), "env").([]any) {
			if at(env, "name") == "DOCKET_DESK_PEERS" {
				if found != nil {
					t.Errorf("%s: named twice", more)
				}
				found = at(env, "value")
			}
		}
		policy, out := objects["NetworkPolicy/docket"], objects["NetworkPolicy/docket-desk-peers"]
		scraped := 1 // from Prometheus
		if found != nil && found != "" {
			scraped = 2
			want(t, policy.object, "desk", "spec", "ingress", 1, "from", 0, "podSelector", "matchLabels", "app.kubernetes.io/component")
			want(t, policy.object, "http", "spec", "ingress", 1, "ports", 0, "port")
			want(t, out.object, "desk", "spec", "podSelector", "matchLabels", "app.kubernetes.io/component")
			want(t, out.object, "http", "spec", "egress", 0, "ports", 0, "port")
		} else if out.object != nil {
			t.Errorf("%s: the desk may ask the others", more)
		}
		if n := len(at(policy.object, "spec", "ingress").([]any)); n != scraped {
			t.Errorf("%s: %d rules in, want %d", more, n, scraped)
		}
		return found
	}
	const api = "desk: {api: {enabled: true, tlsSecretName: s, tokensSecretName: t}"
	for more, want := range map[string]any{
		"":        nil,
		api + "}": "dns:docket-consumer.opa.svc:8080,dns:docket-replayer.opa.svc:8080",
		api + "}\ncollector: {enabled: true, tlsSecretName: s, tokensSecretName: t}": "dns:docket-consumer.opa.svc:8080,dns:docket-replayer.opa.svc:8080,dns:docket-collector.opa.svc:8080",
		api + `, settings: {DOCKET_DESK_PEERS: "http://other:8080"}}`:                "http://other:8080",
		api + "}\nsettings: {DOCKET_DESK_PEERS: \"http://other:8080\"}":              "http://other:8080",
		api + `, settings: {DOCKET_DESK_PEERS: ""}}`:                                 "",
	} {
		if got := peers(more); got != want {
			t.Errorf("%s: %v, want %v", more, got, want)
		}
	}
}

func TestNames_WithinKubernetesLimits(t *testing.T) {
	t.Parallel()
	c := load(t)
	long := strings.Repeat("long-", 20)
	for _, v := range []map[string]any{{"fullnameOverride": long + "x"}, {"nameOverride": long + "x"}} {
		all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: strings.Repeat("r", 53), Namespace: "opa"}, chartutil.DefaultCapabilities)
		if err != nil || all == nil {
			t.Fatal(err)
		}
		objects, _, err := render(c, v)
		if err != nil {
			t.Fatal(err)
		}
		for id, r := range objects {
			if errs, err := judge(r.text); err != nil || len(errs) > 0 {
				t.Errorf("%s: %v %v", id, err, errs)
			}
			if len(r.name()) > 52 { // a StatefulSet's pods and their revision come behind it
				t.Errorf("%s is too long", id)
			}
		}
	}
}

func TestFiles_RunbookAndDashboardAreUnchanged(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "everything")
	rules := objects["PrometheusRule/docket"]
	if strings.Contains(strings.ReplaceAll(rules.text, "https://git.example/docket/blob/main/docs/runbook.md", ""), "docs/runbook.md") || !strings.Contains(rules.text, "https://git.example/docket/blob/main/docs/runbook.md#") {
		t.Error("the links to the runbook have no base")
	}
	if n, urls := strings.Count(rules.text, "- alert:"), strings.Count(rules.text, "runbook_url: https://git.example/docket/blob/main/docs/runbook.md#"); n == 0 || n != urls {
		t.Errorf("%d alerts, %d absolute runbook_url", n, urls)
	}
	c := load(t)
	for _, f := range c.Files {
		if f.Name == "files/docket.json" {
			want(t, objects["ConfigMap/docket-dashboard"].object, strings.TrimSuffix(string(f.Data), "\n"), "data", "docket.json")
			return
		}
	}
	t.Error("the chart has no dashboard")
}
