"""Signing in and out, and changing one's password."""

from typing import Any, Final

from django.contrib.auth import authenticate, logout, password_validation
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from decisions.services import rights
from decisions.web.pages import actor_of, page, person_of

# Why somebody is at the sign-in, by the word in the address; only these are said.
BECAUSE: Final = {
    "ended": "Your session has ended: it lasted too long, or your password or your rights have changed. Sign in again.",
    "password": "Your password is changed, and every session of yours has ended. Sign in with the new one.",
}


@method_decorator(require_http_methods(["GET", "HEAD", "POST"]), name="dispatch")
class Login(LoginView):
    """The login page; who is signed in already goes on to where they wanted."""

    template_name = "login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the reason for which one has to sign in again."""
        return {
            **super().get_context_data(**kwargs),
            "because": BECAUSE.get(self.request.GET.get("because", "")),
        }


class Logout(LogoutView):
    """Signing out is a POST; it ends the session on the server."""

    http_method_names = ["post"]


@sensitive_post_parameters()
@page("GET", "POST")
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password. It ends every session of this person, this one too."""
    if request.method != "POST":
        return _password_page(request, {})
    problems = _problems(request)
    if problems:
        return _password_page(request, problems, status=422)
    rights.change_password(
        user=person_of(request), password=request.POST.get("new", ""), by=actor_of(request)
    )
    logout(request)
    return redirect(f"{resolve_url('login')}?because=password")


def _password_page(request: HttpRequest, problems: dict[str, list[str]], status: int = 200) -> HttpResponse:
    context = {
        "problems": problems,
        "rules": password_validation.password_validators_help_texts(),
        "page": "password",
    }
    return render(request, "password.html", context, status=status)


def _problems(request: HttpRequest) -> dict[str, list[str]]:
    """What is wrong with what was typed, by field. A wrong present password counts like a failed sign-in."""
    person, post = person_of(request), request.POST
    new, problems = post.get("new", ""), {}
    if new != post.get("again", ""):
        problems["again"] = ["The two are not the same."]
    try:
        password_validation.validate_password(new, person)
    except ValidationError as error:
        problems["new"] = list(error.messages)
    if not problems and new == post.get("present", ""):
        problems["new"] = ["That is the present one."]
    known = authenticate(request, username=person.get_username(), password=post.get("present", ""))
    if known is None or known.pk != person.pk:
        problems["present"] = ["That is not your present password."]
    return problems
