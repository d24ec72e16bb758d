//! Letters as files.

use std::os::unix::fs::PermissionsExt;

use rigmark::integrations::mail::{Mail, deliver};

use crate::support::TempDir;

fn letter(text: &str) -> Mail {
    Mail { to: "ann@example.org".to_owned(), subject: "Hello".to_owned(), text: text.to_owned() }
}

#[tokio::test]
async fn a_letter_is_a_private_file_and_delivering_it_again_replaces_it() {
    let folder = TempDir::new();
    deliver(folder.path(), "key", &letter("one")).await.unwrap();
    deliver(folder.path(), "key", &letter("two")).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path().join("mail")).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::read_to_string(files[0].path()).unwrap(), "To: ann@example.org\nSubject: Hello\n\ntwo\n");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_head_of_two_lines_is_refused_and_nothing_is_shown_by_accident() {
    let folder = TempDir::new();
    let smuggled = Mail { to: "ann@example.org\nBcc: eve@example.org".to_owned(), ..letter("text") };
    assert!(deliver(folder.path(), "key", &smuggled).await.is_err());
    let shown = format!("{:?}", letter("secret link"));
    assert!(!shown.contains("ann") && !shown.contains("secret"), "{shown}");
}

/// A job that runs twice (its worker died after the letter) writes the same letter, with the same link.
#[tokio::test]
async fn a_letter_written_twice_is_one_letter() {
    use diesel_async::SimpleAsyncConnection;
    let app = crate::support::TestApp::new().await;
    let ann = super::register(&app, "ann").await;
    let token = super::mailed_token(&app, &ann.email, "Confirm").await;
    let again = "UPDATE jobs SET state = 'ready' WHERE kind = 'identity_letter'";
    app.connect().await.batch_execute(again).await.unwrap();
    assert_eq!(super::mailed_token(&app, &ann.email, "Confirm").await, token);
    assert_eq!(super::letters(&app).await.len(), 1);
    let confirm = app.http.post("/api/v1/auth/email-confirmation/confirm").json(&serde_json::json!({ "token": token }));
    confirm.expect(204).await;
}
