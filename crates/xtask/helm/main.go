// Renders Refrain's Helm chart with Helm's own engine, and checks what comes of it.
//
//	chart CHART VERSION CONFIG
//
// Every object is decoded strictly into the types of Kubernetes' API, so an unknown field is an error.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// The objects of one rendering.
type objects struct {
	deployment appsv1.Deployment
	service    corev1.Service
	secret     *corev1.Secret
	budget     *policyv1.PodDisruptionBudget
	monitor    map[string]any
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: chart CHART VERSION CONFIG")
	}
	charted, err := loader.Load(os.Args[1])
	try(err)
	version := os.Args[2]
	config, err := os.ReadFile(os.Args[3])
	try(err)

	expect(charted.Metadata.Version == version && charted.Metadata.AppVersion == version,
		"Chart.yaml has %s and %s, not %s", charted.Metadata.Version, charted.Metadata.AppVersion, version)
	_, err = render(charted, map[string]any{})
	expect(err != nil && strings.Contains(err.Error(), "set `config`"), "without a configuration: %v", err)

	plain := rendered(charted, map[string]any{"config": string(config)})
	plain.check(version)
	expect(plain.secret != nil && plain.secret.StringData["refrain.toml"] == string(config),
		"the Secret has another configuration")
	expect(plain.budget != nil && plain.monitor == nil, "by default a budget and no monitor")

	full := rendered(charted, map[string]any{
		"existingSecret": "mine", "mysqlPort": 6033, "replicaCount": 3, "preStopSeconds": 7,
		"image":                     map[string]any{"repository": "registry.example/refrain", "tag": "other"},
		"imagePullSecrets":          []any{map[string]any{"name": "pull"}},
		"serviceMonitor":            map[string]any{"enabled": true, "labels": map[string]any{"release": "prom"}},
		"service":                   map[string]any{"type": "LoadBalancer", "annotations": map[string]any{"a/b": "c"}},
		"podDisruptionBudget":       map[string]any{"enabled": false},
		"podAnnotations":            map[string]any{"x": "y"},
		"podLabels":                 map[string]any{"team": "db"},
		"nodeSelector":              map[string]any{"disk": "ssd"},
		"tolerations":               []any{map[string]any{"key": "db", "operator": "Exists"}},
		"affinity":                  map[string]any{"podAntiAffinity": map[string]any{}},
		"topologySpreadConstraints": []any{map[string]any{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}},
		"extraVolumes":              []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": "tls"}}},
		"extraVolumeMounts":         []any{map[string]any{"name": "tls", "mountPath": "/etc/tls"}},
	})
	full.check("other")
	expect(full.secret == nil && full.budget == nil && full.monitor != nil, "the other switches do nothing")
	pod := full.deployment.Spec.Template.Spec
	expect(pod.Volumes[0].Secret.SecretName == "mine", "the Secret is not the one that is there")
	expect(*full.deployment.Spec.Replicas == 3, "there are not three pods")
	expect(len(full.service.Spec.Ports) == 3 && len(pod.Containers[0].Ports) == 3, "MySQL has no port")
	fmt.Println("the chart renders")
}

// Renders the chart. Missing values are errors.
func render(charted *chart.Chart, values map[string]any) (map[string]string, error) {
	options := chartutil.ReleaseOptions{Name: "pool", Namespace: "db", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(charted, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(charted, all)
}

func rendered(charted *chart.Chart, values map[string]any) objects {
	files, err := render(charted, values)
	try(err)
	var found objects
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") || len(bytes.TrimSpace([]byte(text))) == 0 {
			continue
		}
		var head struct {
			Kind string `json:"kind"`
		}
		try(yaml.Unmarshal([]byte(text), &head))
		switch head.Kind {
		case "Deployment":
			strict(text, &found.deployment)
		case "Service":
			strict(text, &found.service)
		case "Secret":
			found.secret = &corev1.Secret{}
			strict(text, found.secret)
		case "PodDisruptionBudget":
			found.budget = &policyv1.PodDisruptionBudget{}
			strict(text, found.budget)
		case "ServiceMonitor":
			try(yaml.Unmarshal([]byte(text), &found.monitor))
		default:
			fail("%s is of the kind %q", name, head.Kind)
		}
	}
	return found
}

// Checks what always holds.
func (found objects) check(tag string) {
	labels := found.deployment.Spec.Template.Labels
	expect(selects(found.deployment.Spec.Selector.MatchLabels, labels), "the deployment has no pods")
	expect(selects(found.service.Spec.Selector, labels), "the service has no pods")
	if found.budget != nil {
		expect(selects(found.budget.Spec.Selector.MatchLabels, labels), "the budget has no pods")
	}
	pod := found.deployment.Spec.Template.Spec
	container := pod.Containers[0]
	expect(strings.HasSuffix(container.Image, "refrain:"+tag), "the image is %s", container.Image)
	for _, port := range found.service.Spec.Ports {
		expect(has(container, port.TargetPort.StrVal), "no port %s", port.TargetPort.StrVal)
	}
	probes := []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe}
	for _, probe := range probes {
		expect(probe != nil && probe.HTTPGet != nil, "a probe is missing")
		expect(slices.Contains([]string{"/healthz", "/readyz"}, probe.HTTPGet.Path), "a probe asks %s", probe.HTTPGet.Path)
		expect(has(container, probe.HTTPGet.Port.StrVal), "a probe asks at no port")
	}
	var wait int64
	_, err := fmt.Sscan(container.Lifecycle.PreStop.Exec.Command[1], &wait)
	try(err)
	expect(wait > 0 && wait+30 < *pod.TerminationGracePeriodSeconds, "the pod is killed before its clients are done")
	expect(*pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 998, "the pod may be root")
	expect(*container.SecurityContext.ReadOnlyRootFilesystem && !*container.SecurityContext.AllowPrivilegeEscalation,
		"the container may change itself")
	for _, mount := range container.VolumeMounts {
		named := func(volume corev1.Volume) bool { return volume.Name == mount.Name }
		expect(slices.ContainsFunc(pod.Volumes, named), "no volume %s", mount.Name)
	}
}

func has(container corev1.Container, port string) bool {
	return slices.ContainsFunc(container.Ports, func(one corev1.ContainerPort) bool { return one.Name == port })
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

func strict(text string, into any) {
	try(yaml.UnmarshalStrict([]byte(text), into))
}

func expect(holds bool, otherwise string, words ...any) {
	if !holds {
		fail(otherwise, words...)
	}
}

func try(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(message string, words ...any) {
	fmt.Fprintf(os.Stderr, message+"\n", words...)
	os.Exit(1)
}
