//! Redaction: nothing that names a person, a host or a device is left; nothing that is measured is lost; twice is once.

use rigmark::benchmarks::json::{canonical_bytes, parse};
use rigmark::benchmarks::redact::{self, command, patterns_complete, text};
use rigmark::benchmarks::{AssessContext, Claim, assess, assess_value};
use serde_json::{Value, json};

use super::{bytes, judge, public_documents, value};

const DOCUMENTS: &[&str] = &[
    "reference-run.json",
    "reference-run.nonce.json",
    "page-transcribed.json",
    "v04_all_valid.json",
    "v04_burst.json",
    "v04_prefill_only.json",
    "synthetic_lil_bench_wrapped.json",
    "synthetic_lil_bench_failed.json",
    "synthetic_v07_error_and_loop.json",
    "real_llamacpp_cpu_completed.json",
];

#[test]
fn a_redacted_copy_is_its_own_redaction_and_gets_the_same_verdict() {
    assert!(patterns_complete());
    let public = public_documents().into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let public = public.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    for original in DOCUMENTS.iter().map(|name| bytes(name)).chain(public) {
        let run = assess(&original, &Claim::default(), &AssessContext::default()).unwrap();
        let again = assess(&run.redacted, &Claim::default(), &AssessContext::default()).unwrap();
        assert_eq!(run.redacted, again.redacted);
        assert_eq!(run.document_sha256, again.document_sha256);
        assert_eq!(run.findings, again.findings);
        assert_eq!(run.matrix, again.matrix);
        assert_eq!((run.verdict, run.title, run.nonce), (again.verdict, again.title, again.nonce));
    }
}

#[test]
fn nothing_that_names_somebody_is_left() {
    let mut document = value("synthetic_lil_bench_wrapped.json");
    document["client"]["uploader"] = json!("alice-liddell");
    document["client"]["argv"] =
        json!(["run", "--token", "lilb_abcdefghijklmnopqrstuvwxyz", "--api-key=sk-verysecretvalue123", "--site", "https://x.example/y"]);
    document["server"]["environment"] =
        json!({"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz123456", "CUDA_VISIBLE_DEVICES": "0,1", "HOME": "/home/alice"});
    document["server"]["argv"] = json!(["vllm", "serve", "/home/alice/models/Mock-1B", "--api-key", "hunter2hunter2", "--port", "8000"]);
    document["server"]["url"] = json!("http://10.3.2.1:8000/v1");
    document["hardware"]["gpus"][0]["uuid_hash"] = json!("abcdef0123456789abcdef01");
    document["hardware"]["gpus"][0]["uuid"] = json!("GPU-8f6d2c1e-1111-2222-3333-444455556666");
    document["hardware"]["pcie"]["gpu_paths"] = json!({"0000:c1:00.0": {"bridge": "0000:c0:01.1"}, "0000:e1:00.0": {"bridge": "00:03.0"}});
    document["hardware"]["host"] = json!({"hostname": "wonderland-01", "machine_id": "0123456789abcdef"});
    let bench = &mut document["results"]["bench"];
    bench["startup_diagnostics"]["hostname"] = json!("wonderland-01");
    bench["startup_diagnostics"]["uname"] = json!("Linux wonderland-01 6.8.0-40-generic #40~22.04-Ubuntu x86_64 GNU/Linux");
    bench["startup_diagnostics"]["env"] = json!({"NCCL_SOCKET_IFNAME": "eno1-secretnet"});
    bench["startup_diagnostics"]["nvidia_smi_query"] =
        json!({"stdout": "0, NVIDIA GeForce RTX 3090, 595.58.03, 00000000:C1:00.0, 4, 16, 350.00", "returncode": 0, "cmd": ["nvidia-smi"]});
    bench["metadata"]["server"] = json!("http://wonderland-01.lan:8000");
    bench["event_log"]
        .as_array_mut()
        .unwrap()
        .insert(1, json!("02:34:14 startup server=http://wonderland-01.lan:8000 user=alice@wonderland-01"));
    bench["event_log"]
        .as_array_mut()
        .unwrap()
        .insert(2, json!("02:34:14 startup note host wonderland-01 at 192.168.1.77, cache /home/alice/.cache/bench"));
    document["results"]["bench_log_tail"] = json!(
        "Traceback: File \"/home/alice/bench/x.py\" on wonderland-01 Authorization: Bearer abcdefgh12345678 GPU-8f6d2c1e-1111-2222-3333-444455556666 OPENAI_API_KEY=abc123 de:ad:be:ef:00:01 fe80::1ff:fe23:4567:890a"
    );
    let run = assess_value(document.clone(), &Claim::default(), &AssessContext::default()).unwrap();
    let copy = String::from_utf8(run.redacted.clone()).unwrap();
    for secret in [
        "alice",
        "wonderland",
        "lilb_",
        "sk-very",
        "hf_abc",
        "hunter2",
        "10.3.2.1",
        "abcdef0123456789",
        "8f6d2c1e",
        "c1:00.0",
        "C1:00.0",
        "c0:01.1",
        "00:03.0",
        "0123456789abcdef",
        "secretnet",
        "192.168.1.77",
        "abcdefgh12345678",
        "abc123",
        "de:ad:be",
        "fe80",
        "x.example",
    ] {
        assert!(!copy.contains(secret), "{secret} is left: {}", &copy[copy.find(secret).unwrap().saturating_sub(80)..][..160]);
    }
    for kept in
        ["NVIDIA GeForce RTX 3090", "595.58.03", "[path]/Mock-1B", "6.8.0-40-generic", "CUDA_VISIBLE_DEVICES", "0.32.0", "--port", "350.00"]
    {
        assert!(copy.contains(kept), "{kept} is gone");
    }
    assert_eq!(run.device_hashes.len(), 3, "two notations of one GPU and a salted hash");
    assert_eq!(run.verdict, judge("synthetic_lil_bench_wrapped.json").verdict);
    assert_eq!(assess(&run.redacted, &Claim::default(), &AssessContext::default()).unwrap().redacted, run.redacted);
}

#[test]
fn a_launch_command_keeps_what_it_says_about_the_engine() {
    let kept = [
        "vllm serve cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit --max-model-len 262144 --max-num-batched-tokens 8192 --num-speculative-tokens 3",
        "# 1x RTX 3090 24GB (Zagitta/gpu-unlock), 350 W limit (VBIOS max), PCIe Gen4 x16 | 32 GB DDR5 | driver 595.99.02",
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.32.0-x86_64 --tokenizer-mode auto --kv-cache-dtype int4_per_token_head",
    ];
    for line in kept {
        assert_eq!(command(line), line);
    }
    for (line, redacted) in [
        ("vllm serve /data/models/Qwen3-8B --api-key abc", "vllm serve [path]/Qwen3-8B --api-key [redacted]"),
        ("HF_TOKEN=hf_xyz vllm serve a/b", "HF_TOKEN=[redacted] vllm serve a/b"),
        ("docker run -v /home/bob/m:/root/.cache -e HF_TOKEN=x y", "docker run -v [path]:[path] -e HF_TOKEN=[redacted] y"),
        (
            "curl -H 'Authorization: Bearer abcdefgh' http://me:pw@10.0.0.1/v1",
            "curl -H 'Authorization: Bearer [redacted]' http://[redacted]",
        ),
        ("x --password=hunter2 --log ~/logs/a", "x --password=[redacted] --log [path]"),
        ("python3 -m vllm --model ./m --db-password 'a b'", "python3 -m vllm --model ./m --db-password [redacted] b'"),
    ] {
        assert_eq!(command(line), redacted);
        assert_eq!(command(redacted), redacted, "idempotent");
    }
}

/// A quick look decides whether a text may hold a key before any pattern is tried; it must not pass over any maker's.
#[test]
fn keys_of_every_maker_go_wherever_they_stand() {
    let makers = [
        "hf_",
        "lilb_",
        "rmk_",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "sk-",
        "sk_live_",
        "sk_test_",
        "rk_live_",
        "rk_test_",
        "whsec_",
        "xoxa-",
        "xoxb-",
        "xoxp-",
        "xoxr-",
        "nvapi-",
        "AIza",
        "AKIA",
        "Bearer ",
        "bearer ",
        "BEARER ",
        "Basic ",
        "BASIC ",
    ];
    for maker in makers {
        // Letters that no other pattern takes for something of its own.
        let secret = "QRSTUVWXYZ234567QRST";
        for line in [format!("{maker}{secret}"), format!("key {maker}{secret} end"), format!("note:{maker}{secret}")] {
            let redacted = command(&line);
            assert!(!redacted.contains(secret) && redacted.contains("[redacted]"), "{line}: {redacted}");
        }
    }
}

#[test]
fn ordinary_text_stays() {
    for line in [
        "02:38:47 startup KV cache budget from vLLM metrics: 24,000 tokens (1500 blocks x 16)",
        "20:45:27 ready C=1 ctx=16k running_reqs=1/1, queue_reqs=0, active_streams=1/1, stable=3.0s",
        "prompt_tokens / TTFT",
        "options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=1\"",
        "/proc/driver/nvidia/params",
        "2026-11-27T21:11:41.402917",
        "AMD Ryzen 9 7900X 12-Core Processor",
    ] {
        assert_eq!(text(line), line);
    }
}

/// A host may be called like a word of the log; the checks still read the log.
#[test]
fn a_hostile_host_name_does_not_blind_the_checks() {
    for name in ["done", "cell", "tok/s", "ready", "bench", "vllm", "0.8.0", "16k"] {
        let mut document = value("reference-run.json");
        document["startup_diagnostics"]["hostname"] = json!(name);
        let run = assess_value(document, &Claim::default(), &AssessContext::default()).unwrap();
        assert_eq!(run.findings, judge("reference-run.json").findings, "{name}");
        assert_eq!(run.run.served_model.as_deref(), Some("bench"));
    }
}

/// Found by `make fuzz`: a pattern changed a part of the host's name, and the rest was a name that only the redacted copy knew.
#[test]
fn a_host_whose_name_holds_a_pattern_is_redacted_once() {
    for (host, secret) in [
        ("bench-HF_TOKEN=hf_abcdefghijklmnophost", "hf_"),
        ("ann@node-7:x", "ann@"),
        ("10.0.0.7:8000-rack", "10.0.0.7"),
        ("x-GPU-01234567-89ab-cdef-0123-456789abcdef-y", "01234567"),
        ("/home/ann/x", "ann"),
    ] {
        let uname = format!("  Linux\t{host}  6.8.0 x86_64");
        let once = redact::document(json!({ "uname": uname, "note": format!("on {host} again") }));
        let again = redact::document(once.value.clone());
        assert_eq!(once.value, again.value, "{host}");
        assert_eq!(once.value["uname"], "  Linux\t[name]  6.8.0 x86_64", "{host}");
        assert!(!once.value.to_string().contains(secret), "{}", once.value);
    }
    // What is no name of anybody stays, and so does a text that names no host.
    for uname in ["Linux localhost 6.8.0", "Linux", "", "Linux 12 6.8.0"] {
        assert_eq!(redact::document(json!({ "uname": uname })).value["uname"], uname);
    }
}

#[test]
fn text_longer_than_any_the_tool_writes_goes_as_a_whole() {
    let redacted = redact::document(json!({"a": "x /home/bob ".repeat(10_000), "b": "x".repeat(65_536)}));
    assert_eq!(redacted.value["a"], "[long text]");
    assert_eq!(redacted.value["b"].as_str().map(str::len), Some(65_536));
}

#[test]
fn equal_keys_after_redaction_stay_apart() {
    let redacted = redact::document(json!({"a": {"0000:c1:00.0": 1, "0000:c2:00.0": 2, "plain": 3}}));
    assert_eq!(redacted.value["a"], json!({"[bus]": 1, "[bus] #2": 2, "plain": 3}));
    assert_eq!(redact::document(redacted.value.clone()).bytes, redacted.bytes);
}

#[test]
fn canonical_bytes_do_not_depend_on_spelling() {
    let one: Value = parse(br#"{"b": 1.0, "a": [1e2, "\u0041"]}"#).unwrap();
    let two: Value = parse(br#" {"a":[100.0,"A"],"b":1.0} "#).unwrap();
    assert_eq!(canonical_bytes(&one), canonical_bytes(&two));
    assert_eq!(canonical_bytes(&one), br#"{"a":[100.0,"A"],"b":1.0}"#);
}

#[test]
fn the_claim_is_redacted_too() {
    let claim: Claim = serde_json::from_value(json!({
        "model": {"hf_id": "/home/alice/models/Qwen3-8B"},
        "launch_command": "vllm serve /home/alice/models/Qwen3-8B --api-key secretsecret",
        "engine": {"name": "vllm", "build": "registry.example/vllm:1 by alice@example.org"},
    }))
    .unwrap();
    let redacted = redact::claim(&claim);
    assert_eq!(redacted.model.as_ref().unwrap().hf_id, "[path]/Qwen3-8B");
    assert_eq!(redacted.launch_command.as_deref(), Some("vllm serve [path]/Qwen3-8B --api-key [redacted]"));
    assert_eq!(redacted.engine.as_ref().unwrap().build.as_deref(), Some("registry.example/vllm:1 by [address]"));
    assert_eq!(redact::claim(&redacted), redacted);
}
